#include "runtime/train/step/op_warnings.h"

#include <ATen/ops/mse_loss.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include "runtime/train/step/call_op.h"
#include "tests/scratch_folder.h"
#include "tests/test_run.h"

namespace stepop {
namespace op_warnings_test {

/// Computes losses of the shapes that its config gives, and says `words` by LibTorch's own warning.
class TestShapes : public Iterator {
 public:
  explicit TestShapes(const Context& context)
      : Iterator(context),
        output_(config().get<std::vector<int64_t>>("output")),
        target_(config().get<std::vector<int64_t>>("target")) {}

  StepOps step_op(const Batch& /*batch*/) override {
    const auto log = [this] {
      return Logs{.scalars = {{"loss", at::mse_loss(at::zeros(output_), at::zeros(target_))}}};
    };
    return {.train_op =
                [this] {
                  TORCH_WARN("the ", ++calls_, ". warning of ", 3);
                  return Scalars{};
                },
            .log_op = log};
  }

 private:
  std::vector<int64_t> output_;
  std::vector<int64_t> target_;
  int64_t calls_ = 0;
};
STEPOP_REGISTER_ITERATOR(TestShapes,
                         {"For tests.", {{"output", "", "a shape"}, {"target", "", "another"}}});

/// The warnings of two steps.
std::string warnings(const std::string& shapes) {
  const ScratchFolder folder;
  Session session(test_config("iterator: TestShapes\nbatch_size: 4\nnum_steps: 2\nlog_freq: 1\n"
                              "n_data_processes: 0\n"
                              "datasets: {train: {class: Synthetic, size: 8, shape: [1, 2, 2]}}\n" +
                              shapes),
                  true, false, false);
  {
    Console console(LogLevel::kWarning);
    console.open_log_file(folder / "log.txt");
    session.show_log(console);
    session.check();
    for (int i = 0; i < 2; ++i) {
      const BatchOrder& order = session.context().splits.order("train");
      const Batch batch = session.context().splits.batch("train", order, i);
      const StepOps ops = call_step_op(session.iterator(), session.context(), session.position(),
                                       "train", true, batch);
      run_op(session.context(), "train", "train_op", *ops.find_train_op("train_op"));
      run_op(session.context(), "train", "log_op", *ops.find_log_op("log_op"));
    }
  }
  const std::string text = read_bytes(folder / "log.txt");
  std::string found;
  for (size_t at = text.find("warning: "); at != std::string::npos;
       at = text.find("warning: ", at + 1)) {
    found += text.substr(at + 9, text.find('\n', at) - at - 8);
  }
  return found;
}

const std::string kOwn = "train/train_op: the 1. warning of 3\n";

TEST_CASE("a warning of LibTorch is said once, with the op") {
  CHECK(warnings("output: [4, 1]\ntarget: [4, 1]") == kOwn);
}

TEST_CASE("a loss of [B, 1] and [B], which compares each example with all, is reported once") {
  const std::string said =
      " takes the difference of each number to each other one, not of each example to its own: "
      "give both the same shape, as .squeeze(1) or .unsqueeze(1) does\n";
  CHECK(warnings("output: [4, 1]\ntarget: [4]") ==
        "train/log_op: mse_loss of [4, 1] and [4]" + said + kOwn);
  CHECK(warnings("output: [4, 1, 8]\ntarget: [4, 3, 1]") ==
        "train/log_op: mse_loss of [4, 1, 8] and [4, 3, 1]" + said + kOwn);
}

TEST_CASE("a loss of one target for all examples is as it was meant") {
  CHECK(warnings("output: [4, 3]\ntarget: [1]") == kOwn);
  CHECK(warnings("output: [4, 3]\ntarget: []") == kOwn);
  CHECK(warnings("output: [4, 3]\ntarget: [4, 1]") == kOwn);
}

}  // namespace op_warnings_test
}  // namespace stepop
