// --check on a device: what differs by itself, and what the iterator keeps.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <doctest/doctest.h>

#include <string>

#include "runtime/tools/trial/repeat_check.h"
#include "runtime/train/iterator/iterator.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/optim/update.h"
#include "tests/accelerator/accelerator.h"
#include "tests/accelerator/lenet_config.h"
#include "tests/test_run.h"

namespace stepop::accelerator {
namespace repeat_test {

/// Scales its loss by how often it ran, where `how` says.
class TestUnlike : public Iterator {
 public:
  explicit TestUnlike(const Context& context)
      : Iterator(context),
        how_(config().get("how", "never")),
        model_(context.network<Network>()),
        update_(context.update()) {}

  StepOps step_op(const Batch& batch) override {
    const at::Tensor loss = at::cross_entropy_loss(model_->forward(batch["image"]), batch["class"]);
    return {.train_op = [=, this] { update_.step(loss * factor()); }};
  }

 private:
  double factor() {
    const at::Context& torch = at::globalContext();
    if (how_ == "without an algorithm") torch.alertNotDeterministic("mine");
    const bool differs = how_ == "always" || how_ == "without an algorithm" ||
                         (how_ == "by its order" && !torch.deterministicAlgorithms()) ||
                         (how_ == "once" && runs_ == 0);
    return differs ? static_cast<double>(++runs_ + 1) : 1;
  }

  std::string how_;
  std::shared_ptr<Network> model_;
  Update& update_;
  int64_t runs_ = 0;
};
STEPOP_REGISTER_ITERATOR(TestUnlike, {"For tests.", {{"how", "never", "when it differs"}}});

Repeats checked(const std::string& how) {
  std::string config = lenet_config(kName, "how: " + how);
  config.replace(config.find("Classifier"), 10, "TestUnlike");
  TestRun run(config);
  return check_repeats(run.session);
}

TEST_CASE("operations that differ by themselves are told from state that is not tracked") {
  const bool before = at::globalContext().deterministicAlgorithms();
  CHECK(checked("never").warning.empty());
  for (const char* how : {"always", "once"}) {
    const Repeats state = checked(how);
    CAPTURE(state.warning);
    CHECK(state.is_from_iterator);
    CHECK(state.warning.find("not tracked (a counter, an optimizer, a random generator). A run") !=
          std::string::npos);
  }
  const Repeats order = checked("by its order");
  CAPTURE(order.warning);
  CHECK_FALSE(order.is_from_iterator);
  CHECK(order.warning.find(": an operation of LibTorch adds in another order each time. With "
                           "deterministic: true ") != std::string::npos);
  const Repeats either = checked("without an algorithm");
  CAPTURE(either.warning);
  CHECK_FALSE(either.is_from_iterator);
  CHECK(either.warning.find(", or an operation is not deterministic; deterministic: true says "
                            "which. A run") != std::string::npos);
  CHECK(at::globalContext().deterministicAlgorithms() == before);
}

}  // namespace repeat_test
}  // namespace stepop::accelerator
