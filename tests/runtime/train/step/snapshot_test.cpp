#include "runtime/train/step/snapshot.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <doctest/doctest.h>

#include "runtime/train/networks/network.h"
#include "runtime/train/optim/update.h"
#include "tests/runtime/train/loop/trainer.h"
#include "tests/test_run.h"

namespace stepop {
namespace snapshot_test {

/// Counts in step_op, and logs how many steps are done.
class TestStepCounter : public Iterator {
 public:
  explicit TestStepCounter(const Context& context)
      : Iterator(context), model_(context.network<Network>()), update_(context.update()) {
    context.track("calls", calls_);
  }

  StepOps step_op(const Batch& batch) override {
    if (get_split() == "train") ++calls_;
    const at::Tensor logits = model_->forward(batch["image"]);
    const at::Tensor target = batch["class"];
    const auto done = static_cast<double>(global_step());
    return {.train_op = [=, this] { update_.step(at::cross_entropy_loss(logits, target)); },
            .log_op =
                [=] {
                  return Logs{.scalars = {{"done", done}}, .images = {}};
                },
            .eval_op =
                [=] {
                  return EvalOutputs{.outputs = {{"logits", logits}}, .labels = {}};
                }};
  }

 private:
  std::shared_ptr<Network> model_;
  Update& update_;
  int64_t calls_ = 0;
};

STEPOP_REGISTER_ITERATOR(TestStepCounter, {"For tests.", {}});

std::string counter_config(const std::string& more) {
  std::string config = trainer_config(more);
  config.replace(config.find("TestTrainer"), 11, "TestStepCounter");
  return config;
}

TEST_CASE("a log before the first step leaves no trace in what an iterator tracks") {
  TestRun run(counter_config("num_steps: 3\nlog_freq: {every: 1, at_start: true}"));
  run.train();
  CHECK(run.metrics().front()["step"] == 0);
  CHECK(run.checkpoint(3).at("calls.value").item<int64_t>() == 3);
}

TEST_CASE("what is logged before the first step counts for early stopping") {
  TestRun run(
      counter_config("num_steps: 9\nlog_freq: {every: 1, at_start: true}\n"
                     "stop_when: {metric: train/log_op/done, mode: min, patience: 3s}"));
  const StopReason reason = run.train();
  CHECK(reason.kind == StopReason::Kind::kMetric);
  CHECK(run.session.position().global_step == 3);
}

}  // namespace snapshot_test
}  // namespace stepop
