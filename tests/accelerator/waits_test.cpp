// How often a training waits for the device: when a GPU would have to be done with everything.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <string>

#include "tests/accelerator/accelerator.h"
#include "tests/accelerator/lenet_config.h"
#include "tests/runtime/train/loop/trainer.h"
#include "tests/test_run.h"

namespace stepop::accelerator {
namespace waits_test {

/// The waits of each step from the second on, of its logs and its checkpoint too; nothing for a
/// step without any.
class WaitsOfSteps : public Hook {
 public:
  void before_step(int64_t step) override {
    std::string text;
    for (const auto& [reason, count] : take_waits()) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", reason, count);
    }
    if (step > 1 && !text.empty()) text_ += fmt::format("step {}: {}; ", step, text);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// The waits of a training of eight steps, with a log of the runtime's numbers at its first step.
std::string waits_of(const std::string& more) {
  std::string config = "eval_hook: null\nlog_ops: []\nnum_steps: 8\n" + more;
  if (more.find("log_freq") == std::string::npos) {
    config += "\nstart_log_freq: 1000\nlog_freq: 1000";
  }
  TestRun run(lenet_config(kName, config, 800));
  WaitsOfSteps waits;
  run.train({&waits});
  return waits.text();
}

TEST_CASE("a step without a log never waits, with the check for NaN in it") {
  for (const char* more :
       {"", "optimizer: {class: SGD, lr: 0.1}", "on_nan: skip",
        "optimizer: {class: AdamW, lr: 0.01, clip_norm: 1}", "ema: {decay: 0.9}\naccumulate: 2",
        "optimizer: {class: Muon, lr: 0.01}", "optimizer: {class: Adafactor, lr: 0.01}",
        "optimizer: {class: ScheduleFreeAdamW, lr: 0.01}", "checkpoint_modules: '.'",
        "metrics: {f1: F1, top2: {class: TopK, k: 2}}", "swa: {from: 2}",
        "hooks: {spike: LossSpike}", "precision: bfloat16", "precision: float16"}) {
    CAPTURE(std::string(more));
    CHECK(waits_of(more) == "");
  }
}

TEST_CASE("optimizers whose kernels cannot be told to do nothing wait once in an update") {
  for (const char* name :
       {"RMSprop", "Lion", "LAMB", "LARS", "Adagrad", "NAdam", "RAdam", "Adamax", "Adadelta"}) {
    CAPTURE(std::string(name));
    CHECK(waits_of(fmt::format("optimizer: {{class: {}, lr: 0.01}}", name))
              .starts_with("step 2: item 1; step 3: item 1; step 4: item 1; step 5: "));
  }
}

TEST_CASE("a log waits for the check for NaN, and once for all its numbers") {
  const std::string logs = "start_log_freq: 3\nlog_freq: 3";
  CHECK(waits_of(logs) == "step 3: copy to host 2; step 6: copy to host 2; ");
  CHECK(waits_of(logs + "\nmetrics: {f1: F1, top2: {class: TopK, k: 2}}") ==
        "step 3: copy to host 2; step 6: copy to host 2; ");
}

TEST_CASE("a checkpoint waits for the check for NaN, and once for all its tensors") {
  CHECK(waits_of("ckpt_freq: 3") ==
        "step 3: copy to host 1, stream 1; step 6: copy to host 1, stream 1; ");
}

TEST_CASE("an evaluation copies its outputs behind its forward passes") {
  const auto waits_with = [](const std::string& examples) {
    std::string config = trainer_config("num_steps: 1\ndevice: hpu");
    config.replace(config.find("size: 10,"), 9, "size: " + examples + ",");
    TestRun run(config);
    take_waits();
    run.train();
    auto waits = take_waits();
    waits.erase("event");  // those of the thread that writes
    return waits;
  };
  // Classifier waits once for each batch: it reads whether each class is there.
  CHECK(waits_with("40") == waits_with("400"));
}

}  // namespace waits_test
}  // namespace stepop::accelerator
