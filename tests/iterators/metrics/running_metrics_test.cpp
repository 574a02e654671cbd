// Metrics of an iterator: what a log covers, and what survives a restart.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "iterators/metrics/running_metrics.h"
#include "runtime/train/iterator/iterator.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/optim/update.h"
#include "tests/message_of.h"
#include "tests/same_state.h"
#include "tests/test_run.h"
#include "tests/without_clock.h"

namespace stepop {
namespace running_metrics_test {

/// Whether the prediction of each example was right, in the order of the ops; a restart continues
/// it.
struct Seen {
  static inline std::vector<at::Tensor> steps = {};
  static inline std::vector<double> of_train_logs = {};
  static inline std::vector<double> of_other_logs = {};
};

/// A classifier that writes down what its metrics should be.
class TestMeasured : public Iterator {
 public:
  explicit TestMeasured(const Context& context)
      : Iterator(context),
        model_(context.network<Network>()),
        update_(context.update()),
        metrics_(context) {}

  StepOps step_op(const Batch& batch) override {
    const at::Tensor target = batch["class"];
    const at::Tensor logits = model_->forward(batch["image"]);
    const at::Tensor is_right = logits.detach().argmax(1).eq(target).to(at::kDouble);
    return {.train_op =
                [=, this] {
                  Seen::steps.push_back(is_right);
                  update_.step(logits.logsumexp(1).mean());
                  metrics_.update(logits, target);
                },
            .log_op =
                [=, this] {
                  if (get_split() == "train" && !Seen::steps.empty()) {
                    Seen::of_train_logs.push_back(at::cat(Seen::steps).mean().item<double>());
                    Seen::steps.clear();
                  } else {
                    Seen::of_other_logs.push_back(is_right.mean().item<double>());
                  }
                  Logs logs;
                  metrics_.add_to(logs, logits, target);
                  return logs;
                }};
  }

 private:
  std::shared_ptr<Network> model_;
  Update& update_;
  RunningMetrics metrics_;
};
STEPOP_REGISTER_ITERATOR(TestMeasured, {"For tests.", {{"metrics/<name>", "none", ""}}});

/// Epochs of 6 batches, the last of 3 examples.
std::string config(const std::string& metrics, const std::string& iterator = "TestMeasured") {
  return "iterator: " + iterator + R"(
model: {class: MLP, inputs: 9, hidden: [8], classes: 3}
datasets:
  train: {class: Synthetic, size: 43, shape: [1, 3, 3], classes: 3}
  validation: {class: Synthetic, size: 43, shape: [1, 3, 3], classes: 3, seed: 4}
batch_size: 8
optimizer: {class: SGD, lr: 0.1}
num_threads: 1
n_data_processes: 0
num_steps: 20
ckpt_freq: 7
eval_hook: null
log_freq: {every: 5}
)" + metrics;
}

std::vector<double> logged(const TestRun& run, const std::string& name) {
  std::vector<double> values;
  for (const auto& line : run.metrics()) {
    if (line.contains(name)) values.push_back(line[name]);
  }
  return values;
}

TEST_CASE(
    "a log of train has the metrics of all batches since the last one, others of their batch") {
  TestRun run(config("metrics: {right: {class: TopK, k: 1}, f: {class: F1, average: none}}"));
  run.session.check();  // which leaves no sums behind
  Seen::steps.clear();
  Seen::of_train_logs.clear();
  Seen::of_other_logs.clear();
  run.train();
  const auto train = logged(run, "train/log_op/right");
  REQUIRE(train.size() == 4);
  for (size_t i = 0; i < train.size(); ++i) {
    CHECK(train[i] == doctest::Approx(Seen::of_train_logs[i]).epsilon(1e-12));
  }
  CHECK(logged(run, "validation/log_op/right") == Seen::of_other_logs);
  CHECK(Seen::of_train_logs != Seen::of_other_logs);
  CHECK(run.metrics().front().contains("train/log_op/f/2"));
}

TEST_CASE("a stop between two logs changes no bit of the metrics") {
  const std::string text = config(
      "metrics: {right: {class: TopK, k: 1}, area: AUROC, f1: F1, iou: MeanIoU, p: Perplexity}",
      "Classifier");
  TestRun whole(text);
  whole.train();
  const auto lines = [](const TestRun& run) {
    std::vector<std::string> found;
    for (const auto& line : run.metrics()) found.push_back(without_clock(line).dump());
    return found;
  };
  const std::vector<std::string> expected = lines(whole);
  const Checkpoint saved = load_checkpoint(whole.checkpoint_path(7));
  CHECK(saved.tensors.at("hooks/metrics.updates").item<int64_t>() == 2);
  const State end = whole.checkpoint(20);

  TestRun resumed(text, whole, saved);
  resumed.train();
  std::vector<std::string> all = lines(resumed);
  REQUIRE(all.size() == expected.size() + 3);  // the logs of steps 10, 15 and 20
  CHECK(std::vector<std::string>(all.end() - 3, all.end()) ==
        std::vector<std::string>(expected.end() - 3, expected.end()));
  CHECK(differences(end, resumed.checkpoint(20)).empty());

  // Without these sums the log would be another.
  Checkpoint without = saved;
  std::erase_if(without.tensors,
                [](const auto& entry) { return entry.first.starts_with("hooks/metrics."); });
  TestRun other(text, whole, without);
  other.train();
  all = lines(other);
  CHECK(std::vector<std::string>(all.end() - 3, all.end()) !=
        std::vector<std::string>(expected.end() - 3, expected.end()));
}

TEST_CASE("a resume may have other metrics, which begin with its first step") {
  TestRun first(config("metrics: {right: {class: TopK, k: 1}}", "Classifier"));
  first.train();
  const Checkpoint saved = load_checkpoint(first.checkpoint_path(7));
  TestRun second(config("metrics: {right: {class: TopK, k: 2}}", "Classifier"), first, saved);
  CHECK(second.session.context().tracker.save("hooks/metrics").at("updates").item<int64_t>() == 0);
  second.train();
  CHECK(logged(second, "train/log_op/right").size() == 7);
  TestRun third(config("", "Classifier"), first, saved);
  third.train();
  CHECK(logged(third, "train/log_op/right").size() == 7);
}

TEST_CASE("mistakes in metrics are found when the run starts, with their place") {
  const auto says = [](const std::string& metrics) {
    return message_of([&] { TestRun(config(metrics, "Classifier")).session.check(); });
  };
  CHECK(says("metrics: F1") ==
        "test.yaml:14: metrics: expected a map of names and metrics, such as {f1: F1}, found "
        "\"F1\"");
  CHECK(says("metrics: {a: {class: F1, avrage: micro}}").find("metrics/a/avrage") !=
        std::string::npos);
  CHECK(says("metrics: {a: AUC}").find("metrics/a: unknown metric \"AUC\"") != std::string::npos);
  CHECK(says("metrics: {loss: F1}") ==
        "train/log_op: metrics/loss: the log op has a number of that name; give the metric another "
        "name");
  CHECK(says("metrics: {a: {class: TopK, k: 4}}")
            .find("train/log_op: metrics/a: k is 4, and there are 3 classes") == 0);
}

}  // namespace running_metrics_test
}  // namespace stepop
