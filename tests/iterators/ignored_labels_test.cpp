// Trainings with labels that are left out: in parts of a batch as in one.

#include <ATen/ops/allclose.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <string>

#include "iterators/losses/cross_entropy.h"
#include "iterators/trainer/loss_model.h"
#include "runtime/data/dataset.h"
#include "runtime/train/networks/network.h"
#include "tests/test_run.h"

#include <torch/nn/modules/linear.h>

namespace stepop {
namespace ignored_labels_test {

/// Eight examples of 3 positions; the first half of them has fewer that count.
class TestIgnored : public Dataset {
 public:
  explicit TestIgnored(const Config& /*params*/) {}
  int64_t size() const override { return 8; }
  Example get(int64_t index, Random&) const override {
    static constexpr std::array<std::array<int64_t, 3>, 8> kLabels = {{{-100, -100, 2},
                                                                       {-100, -100, -100},
                                                                       {-100, -100, -100},
                                                                       {0, -100, -100},
                                                                       {1, 2, 0},
                                                                       {0, -100, 1},
                                                                       {2, 2, 2},
                                                                       {1, 0, -100}}};
    const auto& labels = kLabels[static_cast<size_t>(index)];
    const at::Tensor x =
        at::tensor({1., 2., 3., 4.}, at::kFloat).mul(0.3 + 0.1 * double(index)).sin();
    return {.tensors = {{"x", x},
                        {"label", at::full({}, labels[0], at::kLong)},
                        {"labels", at::tensor({labels[0], labels[1], labels[2]}, at::kLong)}},
            .texts = {}};
  }
};
STEPOP_REGISTER_DATASET(TestIgnored, {"For tests.", {}});

/// [B, 4] -> logits [B, 3 classes, 3 positions], and their cross entropy.
class TestTokens : public LossModel {
 public:
  explicit TestTokens(const Config& params)
      : LossModel({"x", "labels"}),
        gives_mean_(params.get("gives_mean", false)),
        layer_(register_module("layer", torch::nn::Linear(4, 9))) {}

  LossOutput forward(const Batch& batch) override {
    const at::Tensor logits = layer_->forward(batch["x"]).view({-1, 3, 3});
    if (gives_mean_) return cross_entropy(logits, batch["labels"]);
    const WeightedMean losses = cross_entropy_of_examples(logits, batch["labels"]);
    return {losses, {{"again", losses}}};
  }

 private:
  bool gives_mean_;
  torch::nn::Linear layer_;
};
STEPOP_REGISTER_MODEL(TestTokens, {"For tests.", {{"gives_mean", "false", "one number"}}});

constexpr const char* kCommon = R"(
datasets:
  train: {class: TestIgnored}
  validation: {class: TestIgnored}
samplers: {train: sequential}
num_epochs: 1
log_freq: 1
seed: 4
n_data_processes: 0
num_threads: 1
)";

struct Case {
  const char* name;
  const char* config;
  const char* loss;  ///< That is logged.
};

const std::array<Case, 3> kCases = {
    {{"Trainer",
      "iterator: Trainer\nmodel: TestTokens\ninputs: {x: x, labels: labels}\n"
      "optimizer: {class: SGD, lr: 1}\n",
      "train/train_op/loss"},
     {"Trainer of one number",
      "iterator: Trainer\nmodel: {class: TestTokens, gives_mean: true}\n"
      "inputs: {x: x, labels: labels}\noptimizer: {class: SGD, lr: 1}\n",
      "train/train_op/loss"},
     {"ExtensibleTrainer", R"(
iterator: ExtensibleTrainer
networks: {a: {class: MLP, inputs: 4, hidden: [], classes: 3}}
steps:
  first:
    training: a
    optimizer: sgd
    optimizer_params: {lr: 1, momentum: 0, weight_decay: 0}
    injectors: {made: {type: generator, generator: a, in: x, out: made}}
    losses: {ce: {type: cross_entropy, logits: made, labels: label, weight: 1}}
)",
      "train/train_op/ce"}}};

struct Result {
  State weights;
  double loss = 0;
};

Result train(const Case& each, const std::string& more) {
  TestRun run(std::string(each.config) + kCommon + more);
  run.train();
  REQUIRE(run.checkpoints().back() == 1);
  Result result;
  for (const auto& [name, tensor] : run.checkpoint(1)) {
    if (name.ends_with("weight") || name.ends_with("bias")) result.weights[name] = tensor;
  }
  for (const auto& line : run.metrics()) {
    if (line.contains(each.loss)) result.loss = line[each.loss];
  }
  return result;
}

TEST_CASE("a step of accumulated batches is that of one batch, whatever its labels leave out") {
  for (const Case& each : kCases) {
    CAPTURE(each.name);
    const Result whole = train(each, "batch_size: 8\n");
    CHECK(!whole.weights.empty());
    for (const char* more : {"batch_size: 4\naccumulate: 2\n", "batch_size: 2\naccumulate: 4\n",
                             "batch_size: 3\naccumulate: 3\n"}) {
      CAPTURE(more);
      const Result parts = train(each, more);
      for (const auto& [name, tensor] : whole.weights) {
        CAPTURE(name);
        CHECK(at::allclose(parts.weights.at(name), tensor, 1e-5, 1e-6));
      }
      CHECK(parts.loss == doctest::Approx(whole.loss).epsilon(1e-5));
    }
  }
}

TEST_CASE("the loss of an evaluation does not depend on the size of its batches") {
  for (const char* metric : {"validation/eval_op/loss", "validation/eval_op/again"}) {
    double first = 0;
    for (const int size : {8, 1, 2, 5}) {
      CAPTURE(size);
      TestRun run(std::string(kCases[0].config) + kCommon +
                  fmt::format("batch_size: 8\ntest_batch_size: {}\n", size));
      run.train();
      double found = 0;
      for (const auto& line : run.metrics()) {
        if (line.contains(metric)) found = line[metric];
      }
      CHECK(found > 0);
      if (first == 0) first = found;
      CHECK(found == doctest::Approx(first).epsilon(1e-6));
    }
  }
}

}  // namespace ignored_labels_test
}  // namespace stepop
