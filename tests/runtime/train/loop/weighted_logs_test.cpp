// What is logged of a step of several batches, and of an evaluation, beside the means over all.

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <numeric>
#include <string>

#include "runtime/data/dataset.h"
#include "runtime/train/iterator/iterator.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/optim/update.h"
#include "tests/test_run.h"

namespace stepop {
namespace weighted_logs_test {

constexpr std::array<double, 10> kValues = {1, 1, 1, 1, 1, 1, 1, 1, 25, 25};
/// How much each value counts; in the second batch of four nothing does.
constexpr std::array<double, 10> kCounts = {1, 0, 0, 0, 0, 0, 0, 0, 2, 0};

class TestCounted : public Dataset {
 public:
  explicit TestCounted(const Config& params) : counts_(params.get("counts", true)) {}
  int64_t size() const override { return 10; }
  Example get(int64_t index, Random&) const override {
    const auto i = static_cast<size_t>(index);
    return {.tensors = {{"x", at::full({1}, kValues[i], at::kFloat)},
                        {"count", at::full({}, counts_ ? kCounts[i] : 0, at::kFloat)}},
            .texts = {}};
  }

 private:
  bool counts_;
};
STEPOP_REGISTER_DATASET(TestCounted, {"For tests.", {{"counts", "true", "false: nothing counts"}}});

/// Its loss is x, whatever the network.
class TestCountedMeans : public Iterator {
 public:
  explicit TestCountedMeans(const Context& context)
      : Iterator(context), model_(context.network<Network>()), update_(context.update()) {}

  StepOps step_op(const Batch& batch) override {
    const at::Tensor values = batch["x"].squeeze(1) + 0 * model_->forward(batch["x"]).sum(1);
    const at::Tensor counts = batch["count"];
    const WeightedMean counted = weighted_mean(values, counts);
    const Scalars scalars = {{"mean", values.detach().mean()},
                             {"number", values.detach().mean().item<double>()},
                             {"counted", WeightedMean(counted.value().detach(), counted.weight())}};
    return {.train_op =
                [=, this] {
                  update_.step({counted.value(), counts.sum().item<double>()});
                  return scalars;
                },
            .log_op = [=] { return Logs{.scalars = scalars}; },
            .eval_op =
                [=] {
                  return EvalOutputs{.labels = {{"mean", values}, {"counted", {values, counts}}}};
                }};
  }

 private:
  std::shared_ptr<Network> model_;
  Update& update_;
};
STEPOP_REGISTER_ITERATOR(TestCountedMeans, {"For tests.", {}});

std::string config(const std::string& more, const std::string& counts = "true") {
  return fmt::format(R"(
iterator: TestCountedMeans
model: {{class: MLP, inputs: 1, hidden: [2], classes: 1}}
datasets:
  train: {{class: TestCounted, counts: {0}}}
  validation: {{class: TestCounted, counts: {0}}}
samplers: {{train: sequential}}
batch_size: 4
optimizer: {{class: SGD, lr: 0.1}}
n_data_processes: 0
num_threads: 1
{1}
)",
                     counts, more);
}

double all_mean() { return std::accumulate(kValues.begin(), kValues.end(), 0.0) / 10; }
double counted_mean() { return (1 * 1 + 2 * 25) / 3.0; }

TEST_CASE("what train op and log op log of a step of several batches is what was trained by") {
  TestRun run(config("accumulate: 3\nnum_steps: 4\nlog_freq: 1\nstart_log_freq: 1"));
  run.train();
  int found = 0;
  for (const auto& line : run.metrics()) {
    if (!line.contains("train/train_op/mean")) continue;
    ++found;
    for (const char* op : {"train/train_op/", "train/log_op/"}) {
      CAPTURE(op);
      const std::string place = op;
      CHECK(line[place + "mean"].get<double>() == doctest::Approx(all_mean()));
      CHECK(line[place + "number"].get<double>() == doctest::Approx(all_mean()));
      CHECK(line[place + "counted"].get<double>() == doctest::Approx(counted_mean()));
    }
  }
  CHECK(found == 4);
}

TEST_CASE("over several steps a mean is over the steps, and one with a weight over what counts") {
  // An epoch has the steps [1, 1] and [25]; the second log comes after both.
  TestRun run(config("accumulate: 2\nnum_steps: 2\nlog_freq: 2\nstart_log_freq: 2"));
  run.train();
  const auto lines = run.metrics();
  bool is_found = false;
  for (const auto& line : lines) {
    if (!line.contains("train/train_op/mean") || line["step"] != 2) continue;
    is_found = true;
    CHECK(line["train/train_op/mean"].get<double>() == doctest::Approx((1 + 25) / 2.0));
    CHECK(line["train/train_op/counted"].get<double>() == doctest::Approx(counted_mean()));
  }
  CHECK(is_found);
}

TEST_CASE("an evaluation's means do not depend on the size of its batches") {
  for (const int size : {1, 2, 5, 10}) {
    TestRun run(config(fmt::format("num_epochs: 1\ntest_batch_size: {}", size)));
    run.train();
    bool is_found = false;
    for (const auto& line : run.metrics()) {
      if (!line.contains("validation/eval_op/mean")) continue;
      is_found = true;
      CHECK(line["validation/eval_op/mean"].get<double>() == doctest::Approx(all_mean()));
      CHECK(line["validation/eval_op/counted"].get<double>() == doctest::Approx(counted_mean()));
    }
    CHECK(is_found);
  }
}

TEST_CASE("where nothing counts there is no number, and it is said once") {
  TestRun run(config("num_epochs: 2\nlog_freq: 1", "false"));
  const std::string log = run.root() + "/said.txt";
  run.train({}, log);
  for (const auto& line : run.metrics()) {
    for (const auto& [name, value] : line.items()) CHECK_FALSE(name.ends_with("/counted"));
  }
  const std::string said = read_bytes(log);
  const std::string words = "nothing counts in 1 batch so far, the first in step 1";
  CHECK(said.find(words) != std::string::npos);
  CHECK(said.find("nothing counts", said.find(words) + 1) == std::string::npos);
}

}  // namespace weighted_logs_test
}  // namespace stepop
