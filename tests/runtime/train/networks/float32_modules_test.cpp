#include "runtime/train/networks/float32_modules.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/relu.h>
#include <doctest/doctest.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/train/checkpoint/tracker.h"
#include "runtime/train/networks/autocast.h"
#include "runtime/train/networks/checkpoint_modules.h"
#include "runtime/train/networks/generators.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/networks/networks.h"
#include "tests/message_of.h"
#include "tests/test_run.h"

namespace stepop {
namespace float32_modules_test {

/// Notes the types of what it gets and gives.
struct NotingBlockImpl : torch::nn::Module {
  NotingBlockImpl() : layer(register_module("layer", torch::nn::Linear(5, 5))) {}
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y = layer->forward(x);
    types.push_back({x.scalar_type(), y.scalar_type()});
    return at::relu(y);
  }
  torch::nn::Linear layer;
  std::vector<std::vector<at::ScalarType>> types;
};

struct TestBlocksOfTypes : Network {
  explicit TestBlocksOfTypes(const Config& /*params*/) {
    register_module("blocks", list);
    for (int i = 0; i < 3; ++i) {
      blocks.push_back(std::make_shared<NotingBlockImpl>());
      list->push_back(blocks.back());
    }
    head = register_module("head", torch::nn::Linear(5, 2));
  }
  at::Tensor forward(const at::Tensor& x) override {
    at::Tensor h = x;
    for (const auto& block : blocks) h = checkpointed(*block, h);
    return head->forward(h);
  }
  torch::nn::ModuleList list;
  std::vector<std::shared_ptr<NotingBlockImpl>> blocks;
  torch::nn::Linear head{nullptr};
};
STEPOP_REGISTER_MODEL(TestBlocksOfTypes, {"For tests.", {}});

struct Result {
  std::vector<std::vector<std::vector<at::ScalarType>>> types;  ///< By block and run.
  at::Tensor output;
  at::Tensor gradient;  ///< Of the first block's weight.
  std::string warning;
};

Result step_in(Precision precision, const std::string& config) {
  seed_generators(5, c10::kCPU);
  Tracker tracker;
  const Networks networks(test_config("model: TestBlocksOfTypes\n" + config), c10::kCPU, tracker);
  auto& network = dynamic_cast<TestBlocksOfTypes&>(*networks.get("model"));
  const at::Tensor input = at::arange(20, at::kFloat).sin().reshape({4, 5});
  Result result;
  at::Tensor loss;
  {
    const AutocastGuard guard(precision, c10::kCPU);
    result.output = network.forward(input);
    loss = result.output.to(at::kFloat).square().sum();
  }
  loss.backward();
  for (const auto& block : network.blocks) result.types.push_back(block->types);
  result.gradient = network.blocks[0]->layer->weight.grad();
  result.warning = networks.float32_modules().warning();
  return result;
}

TEST_CASE("modules that the config names take and give float32 within half precision") {
  const auto f32 = at::kFloat;
  for (const Precision precision : {Precision::kBfloat16, Precision::kFloat16}) {
    const auto half = precision == Precision::kBfloat16 ? at::kBFloat16 : at::kHalf;
    const Result result = step_in(precision, "float32_modules: ['blocks.1']");
    CHECK((result.types[0].at(0) == std::vector{f32, half}));
    CHECK((result.types[1].at(0) == std::vector{f32, f32}));  // its input was half precision
    CHECK((result.types[2].at(0) == std::vector{f32, half}));
    CHECK((result.output.scalar_type() == half));
    CHECK(result.warning == "");
  }
}

TEST_CASE("what computes in float32 has the numbers of float32, run again or not") {
  const Result expected = step_in(Precision::kFloat32, "");
  const Result half = step_in(Precision::kBfloat16, "");
  CHECK_FALSE(at::equal(half.gradient, expected.gradient));
  const Result kept = step_in(Precision::kBfloat16, "float32_modules: blocks");
  // The head computes in bfloat16, and so its gradient has the digits of bfloat16.
  CHECK(at::allclose(kept.output.to(at::kFloat), expected.output, 1e-2, 1e-3));
  for (const std::string again : {"blocks", "blocks.1"}) {
    CAPTURE(again);
    const Result twice =
        step_in(Precision::kBfloat16, "float32_modules: blocks\ncheckpoint_modules: " + again);
    CHECK(at::equal(twice.output, kept.output));
    CHECK(at::equal(twice.gradient, kept.gradient));
    CHECK(twice.types[1].size() == 2);
    CHECK((twice.types[1][1] == std::vector{at::kFloat, at::kFloat}));
  }
  const Result whole = step_in(Precision::kFloat32, "float32_modules: blocks");
  CHECK(at::equal(whole.output, expected.output));
  CHECK(at::equal(whole.gradient, expected.gradient));
}

TEST_CASE("a pattern for float32 that reaches nothing is said") {
  CHECK(
      message_of([] { step_in(Precision::kBfloat16, "float32_modules: [blocks, tail]"); }) ==
      "test.yaml:2: float32_modules/1: \"tail\" matches no module; there are: model.blocks, "
      "model.blocks.0, model.blocks.0.layer, model.blocks.1, model.blocks.1.layer, model.blocks.2, "
      "model.blocks.2.layer, model.head");
  CHECK(step_in(Precision::kBfloat16, "float32_modules: [head, blocks.2]").warning ==
        "float32_modules: no module that head names ran in float32 by this key so far: a network "
        "calls its blocks by checkpointed(*block, x), of "
        "runtime/train/networks/checkpoint_modules.h");
}

}  // namespace float32_modules_test
}  // namespace stepop
