#include "runtime/trial/repeat_check.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/rand_like.h>
#include <doctest/doctest.h>

#include <random>

#include "runtime/networks/network.h"
#include "tests/runtime/loop/trainer.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace repeat_check_test {

/// Keeps state of its own, which it tracks or not.
class TestKeeper : public Iterator {
 public:
  explicit TestKeeper(const Context& context)
      : Iterator(context),
        keeps_(config().get("keeps", "nothing")),
        model_(context.network<Network>()),
        update_(context.update()) {
    if (config().get("tracked", false)) {
      context.track("calls", calls_);
      context.track("momentum", momentum_);
    }
  }

  StepOps step_op(const Batch& batch) override {
    const at::Tensor logits = model_->forward(batch["image"]);
    const at::Tensor loss = at::cross_entropy_loss(logits, batch["class"]);
    return {.train_op = [=, this] { update_.step(loss * weight(loss)); },
            .log_op =
                [=] {
                  return Logs{.scalars = {{"loss", loss}}};
                },
            .eval_op =
                [=] {
                  return EvalOutputs{.outputs = {{"logits", logits}}};
                }};
  }

 private:
  double weight(const at::Tensor& loss) {
    if (keeps_ == "a count") return static_cast<double>(++calls_);
    if (keeps_ == "a generator") return std::uniform_real_distribution<>()(generator_);
    if (keeps_ == "a momentum") {
      momentum_ = momentum_.defined() ? momentum_ * 0.9 + loss.detach() : loss.detach();
      return momentum_.item<double>();
    }
    return at::rand_like(loss).item<double>();
  }

  std::string keeps_;
  std::shared_ptr<Network> model_;
  Update& update_;
  int64_t calls_ = 0;
  at::Tensor momentum_;
  std::mt19937_64 generator_;
};

STEPOP_REGISTER_ITERATOR(TestKeeper, {"For tests.", {}});

std::string checked(const std::string& more, bool train_first = false) {
  std::string yaml = trainer_config(more);
  yaml.replace(yaml.find("TestTrainer"), 11, "TestKeeper");
  TestRun run(yaml + "num_steps: 5\nema: {decay: 0.9}\n");
  if (train_first) run.train();
  const Tracker& tracker = run.session.context().tracker;
  run.session.context().networks.start_averages();
  State before;
  for (const auto& [name, tensor] : tracker.save()) before.emplace(name, tensor.clone());
  const Position position = run.session.position();
  const std::string text = check_repeats(run.session);
  CHECK(differences(before, tracker.save()) == "");
  CHECK(run.session.position().global_step == position.global_step);
  return text;
}

TEST_CASE("a training whose state is tracked repeats to the bit, and is left as it was") {
  CHECK(checked("keeps: nothing") == "");
  CHECK(checked("keeps: nothing", /*train_first=*/true) == "");
  CHECK(checked("keeps: a count\ntracked: true") == "");
  CHECK(checked("keeps: a momentum\ntracked: true") == "");
}

TEST_CASE("state that is used and not tracked shows when steps are repeated") {
  for (const char* keeps : {"a count", "a momentum", "a generator"}) {
    const std::string text = checked(std::string("keeps: ") + keeps);
    CHECK(
        text.starts_with("two training steps, repeated from the same state, gave another result in "
                         "ema_model.first.bias, "));
    CHECK(text.ends_with(
        ": the iterator keeps something that is not tracked (a counter, an optimizer, a random "
        "generator), or an operation is not deterministic. A run that resumes will differ from one "
        "that was never stopped"));
  }
}

}  // namespace repeat_check_test
}  // namespace stepop
