#include "iterators/trainer/trainer.h"
#include "runtime/train/iterator/splits.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "eval_out/read/eval_reader.h"
#include "eval_out/read/find_evaluations.h"
#include "runtime/core/formats/safetensors.h"
#include "runtime/train/networks/network.h"
#include "tests/iterators/trainer/line_config.h"
#include "tests/message_of.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"
#include "tests/tensor_values.h"
#include "tests/test_run.h"

namespace stepop {
namespace trainer_test {

/// y = w x, with a loss for each example, or their mean.
class FitLine : public LossModel {
 public:
  explicit FitLine(const Config& params)
      : LossModel({"x", "y"}),
        gives_mean_(params.get("gives_mean", false)),
        w_(register_parameter("w", at::full({4}, 0.5))) {}

  LossOutput forward(const Batch& batch) override {
    const at::Tensor error = (batch["x"] * w_).sum(1) - batch["y"].squeeze(1);
    const at::Tensor loss = error.square();  // [B]
    if (gives_mean_) return loss.mean();
    return {loss, {{"error", error.abs()}, {"two", 2}}};
  }

  at::Tensor sample(const Batch& conditions) override {
    return at::full({conditions.size(), 1, 4, 4}, w_[0].item<double>());
  }
  at::Tensor reconstruct(const Batch& batch) override { return batch["x"]; }

 private:
  bool gives_mean_;
  at::Tensor w_;
};
STEPOP_REGISTER_MODEL(FitLine);

/// A model of a user's own with nothing but forward.
class OnlyForward : public LossModel {
 public:
  explicit OnlyForward(const Config&) : w_(register_parameter("w", at::full({1}, 2.0))) {}
  LossOutput forward(const Batch& batch) override { return (w_ * batch["x"]).square().mean(); }

 private:
  at::Tensor w_;
};
STEPOP_REGISTER_MODEL(OnlyForward);

class WrongLoss : public OnlyForward {
 public:
  using OnlyForward::OnlyForward;
  LossOutput forward(const Batch& batch) override {
    return OnlyForward::forward(batch).loss.expand({7});
  }
};
STEPOP_REGISTER_MODEL(WrongLoss);

TEST_CASE("a model that knows its loss trains to the numbers of a loop in Python") {
  TestRun run(line_config("num_steps: 7\nlog_freq: 1"));
  run.train();
  std::vector<double> logged;
  for (const auto& line : run.metrics()) {
    if (line.contains("train/train_op/loss")) logged.push_back(line["train/train_op/loss"]);
  }

  TestRun other(line_config("num_steps: 7"));  // for its batches
  const BatchOrder& order = other.session.context().splits.order("train");
  State batches;
  for (int64_t step = 0; step < 7; ++step) {
    const Batch batch = other.session.context().splits.batch("train", order, step);
    batches["x" + std::to_string(step)] = batch["x"];
    batches["y" + std::to_string(step)] = batch["y"];
  }
  const ScratchFolder folder;
  save_safetensors(folder.path("batches.safetensors"), batches);
  std::istringstream python(run_python(R"(
import sys, torch
from safetensors.torch import load_file
t = load_file(sys.argv[1])
w = torch.full((4,), 0.5, requires_grad=True)
sgd = torch.optim.SGD([w], lr=0.05)
for i in range(7):
    loss = ((t[f"x{i}"] * w).sum(1) - t[f"y{i}"].squeeze(1)).square().mean()
    sgd.zero_grad()
    loss.backward()
    sgd.step()
    print(loss.item())
print(*w.tolist())
)",
                                       {folder.path("batches.safetensors")}));
  REQUIRE(logged.size() == 7);
  double number = 0;
  for (const double loss : logged) {
    REQUIRE(static_cast<bool>(python >> number));
    CHECK(loss == doctest::Approx(number).epsilon(1e-5));
  }
  for (const float weight : values_of<float>(run.checkpoint(7).at("model.w"))) {
    REQUIRE(static_cast<bool>(python >> number));
    CHECK(weight == doctest::Approx(number).epsilon(1e-5));
  }
  CHECK(run.metrics().front().contains("train/train_op/error"));
}

TEST_CASE("batches that are accumulated train as one large batch") {
  const auto weights = [](const std::string& sizes) {
    TestRun run(line_config("num_steps: 4\n" + sizes));
    run.train();
    return run.checkpoint(4).at("model.w");
  };
  const at::Tensor small = weights("batch_size: 2\naccumulate: 2");
  CHECK((weights("") - small).abs().max().item<double>() < 1e-6);
}

TEST_CASE("an evaluation writes the loss of each example and logs its mean") {
  for (const bool gives_mean : {false, true}) {
    CAPTURE(gives_mean);
    TestRun run(
        line_config("num_steps: 3", gives_mean ? "{class: FitLine, gives_mean: true}" : "FitLine"));
    run.train();
    const auto found = find_evaluations(run.root());
    REQUIRE(found.size() == 1);
    std::string file;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(run.root() + "/eval")) {
      if (entry.path().filename() == "outputs.h5") file = entry.path().string();
    }
    const EvalFile outputs(file);
    const at::Tensor losses = outputs.read("labels/loss");
    CHECK(losses.numel() == 10);

    const at::Tensor w = run.checkpoint(3).at("model.w");
    const Context& context = run.session.context();
    std::vector<at::Tensor> expected;
    for (int64_t i = 0; i < 3; ++i) {
      const Batch batch = run.session.context().splits.batch(
          "validation", run.session.context().splits.evaluation_order("validation", 0), i);
      const at::Tensor loss = ((batch["x"] * w).sum(1) - batch["y"].squeeze(1)).square();
      expected.push_back(gives_mean ? loss.mean().expand({loss.size(0)}) : loss);
    }
    CHECK((losses - at::cat(expected)).abs().max().item<double>() < 1e-5);
    CHECK(run.metrics().back()["validation/eval_op/loss"].get<double>() ==
          doctest::Approx(losses.mean().item<double>()).epsilon(1e-5));
    CHECK(outputs.contains("labels/error") == !gives_mean);
    CHECK(context.position.global_step == 3);
  }
}

TEST_CASE("a key of the batch that is missing or superfluous is an error that names both sides") {
  const auto error = [](const std::string& tensors, const std::string& more) {
    std::string config = line_config("num_steps: 2\n" + more);
    const std::string old = "tensors: {x: [4], y: [1]}";
    config.replace(config.find(old), old.size(), tensors);
    config.replace(config.find(old), old.size(), tensors);
    return message_of([&] { TestRun(config).session.check(); });
  };
  CHECK(error("tensors: {x: [4], target: [1]}", "")
            .starts_with("train/step_op: the model takes x, y, the batch has x, target; missing: "
                         "y; not needed: target\n  in the config, inputs: {y: KEY} says which "
                         "key of the batch a name of the model is"));
  CHECK(error("tensors: {x: [4], y: [1], z: [2]}", "")
            .starts_with("train/step_op: the model takes x, y, the batch has x, y, z; "
                         "not needed: z\n"));
  CHECK(error("tensors: {x: [4], target: [1], z: [2]}", "inputs: {y: target}") == "no error");
  CHECK(error("tensors: {x: [4], target: [1]}", "inputs: {y: targt}")
            .starts_with("train/step_op: the model takes x, y (from targt), the batch has x, "
                         "target; missing: targt\n"));
  CHECK(error("tensors: {x: [4], y: [1]}", "inputs: {z: x}")
            .ends_with("inputs/z: the model takes no \"z\"; it takes: x, y"));
}

TEST_CASE("a model with nothing but forward trains, and a loss of a wrong shape is refused") {
  TestRun run(line_config("num_steps: 3", "OnlyForward"));
  run.session.check();
  run.train();
  CHECK(std::abs(run.checkpoint(3).at("model.w").item<double>()) < 2);
  CHECK(message_of([] { TestRun(line_config("num_steps: 3", "WrongLoss")).session.check(); })
            .starts_with("train/step_op: the model's loss: expected one number [], or one for each "
                         "of the 4 examples, found"));
  CHECK(message_of([] {
          TestRun(line_config("num_steps: 3\nsampling: {new: {class: NoiseToImage, when: 1}}",
                              "OnlyForward"))
              .session.check();
        })
            .starts_with("train/sample_op/new: the model OnlyForward makes no samples: a sampler "
                         "needs its function at::Tensor sample("));
  CHECK(message_of([] {
          TestRun(line_config("num_steps: 3", "{class: MLP, inputs: 4}"));
        }).find("as a stepop::LossModel, which the model of the config is not") !=
        std::string::npos);
}

}  // namespace trainer_test
}  // namespace stepop
