#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>

#include "iterators/vunet/pictures.h"
#include "models/vunet/vunet.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/core/pictures/image_grid.h"
#include "runtime/train/iterator/splits.h"
#include "runtime/train/networks/checkpoint_modules.h"
#include "tests/iterators/vunet/vunet_run.h"
#include "tests/message_of.h"
#include "tests/same_state.h"

namespace stepop {
namespace vunet_iterator_test {

constexpr const char* kLosses = R"(
num_steps: 4
eval_mode: appearance_transfer
losses:
  color_L1: {weight: 2}
  color_gradient: {weight: 0}
  KL: {start_ramp_it: 1, start_ramp_val: 0, end_ramp_it: 3, end_ramp_val: 0.5}
)";

TEST_CASE("with channels_last a training computes the same, saves the same names and resumes") {
  const std::string yaml = vunet_config(kLosses);
  const std::string more = "ckpt_freq: 2\ncheckpoints: {keep_last: 9}\n";
  TestRun plain(yaml + more);
  plain.train();
  const std::string last_yaml = yaml + more + "channels_last: true\n";
  TestRun last(last_yaml);
  last.session.check();
  size_t convolutions = 0;
  for (const auto& [name, tensor] : last.session.context().networks.tensors("model")) {
    if (tensor.dim() != 4) continue;
    CHECK(tensor.is_contiguous(at::MemoryFormat::ChannelsLast));
    ++convolutions;
  }
  CHECK(convolutions > 50);
  const Batch& fixed = last.session.context().splits.fixed_examples("train");
  CHECK(fixed["target"].is_contiguous(at::MemoryFormat::ChannelsLast));
  last.train();
  const State before = plain.checkpoint(4);
  const State after = last.checkpoint(4);
  for (const auto& [name, tensor] : before) {
    CAPTURE(name);
    if (!name.starts_with("model.")) continue;
    // Four steps of Adam move a weight by up to 4e-3.
    CHECK((after.at(name) - tensor).abs().mean().item<double>() < 1e-6);
  }
  TestRun rest(last_yaml, last, 2);
  rest.train();
  CHECK(differences(after, rest.checkpoint(4)) == "");
}

TEST_CASE(
    "with modules that are run again in the backward pass a training ends with the same bits") {
  for (const std::string more : {"", "precision: bfloat16\naccumulate: 2\n"}) {
    CAPTURE(more);
    TestRun plain(vunet_config(kLosses) + more);
    plain.session.check();  // which chooses how convolutions are computed
    plain.train();
    TestRun again(vunet_config(kLosses) + more + "checkpoint_modules: [decoder, blocks]\n");
    again.session.check();
    again.train();
    CHECK(again.session.context().networks.checkpoint_modules().ran().size() > 10);
    CHECK(differences(again.checkpoint(4), plain.checkpoint(4)) == "");
  }
}

TEST_CASE("VUNet's losses are weighed by the step, logged by batch and written by instance") {
  TestRun run(vunet_config(kLosses));
  run.session.check();
  run.train();
  // A step begins with the weight after the steps before it; a log of validation is after it.
  const auto total = [](const nlohmann::json& line, const std::string& split, double weight) {
    const auto value = [&](const char* name) {
      return line.at(split + "/log_op/" + name).get<double>();
    };
    CHECK(value("total") ==
          doctest::Approx(2 * value("color_L1") + weight * value("KL")).epsilon(1e-5));
    CHECK(value("color_gradient") > 0);
  };
  const std::vector<double> ramp = {0, 0, 0.25, 0.5, 0.5};
  size_t logs = 0;
  for (const auto& line : run.metrics()) {
    if (!line.contains("train/log_op/total")) continue;
    const auto step = line.at("step").get<size_t>();
    CAPTURE(step);
    total(line, "train", ramp[step - 1]);
    total(line, "validation", ramp[step]);
    ++logs;
  }
  CHECK(logs == 4);

  const EvalFile outputs = outputs_after(run, 4);
  CHECK((outputs.keys() ==
         std::vector<std::string>{"labels/KL", "labels/color_L1", "labels/color_gradient",
                                  "labels/total", "outputs/appearance", "outputs/pose",
                                  "outputs/prediction", "outputs/sample", "outputs/target"}));
  Random random(0);
  const Example last = run.session.context().dataset("validation").get(5, random);
  CHECK(outputs.read("outputs/appearance", 5, 1)[0].equal(last.tensors.at("appearance")));
  CHECK(outputs.read("outputs/pose", 5, 1)[0].equal(last.tensors.at("stickman")));
  CHECK(outputs.read("outputs/target", 5, 1)[0].equal(last.tensors.at("target")));
  CHECK(at::allclose(outputs.read("labels/total"),
                     2 * outputs.read("labels/color_L1") + 0.5 * outputs.read("labels/KL")));
  CHECK((outputs.read("outputs/prediction").sizes() == at::IntArrayRef{6, 3, 32, 32}));
  CHECK((outputs.read("outputs/sample").sizes() == at::IntArrayRef{6, 3, 32, 32}));
}

TEST_CASE("an evaluation without its inputs has what the network made alone") {
  TestRun run(vunet_config(std::string(kLosses) + "eval_inputs: false\n"));
  run.train();
  const EvalFile outputs = outputs_after(run, 4);
  CHECK((outputs.keys() == std::vector<std::string>{"labels/KL", "labels/color_L1",
                                                    "labels/color_gradient", "labels/total",
                                                    "outputs/prediction", "outputs/sample"}));
}

TEST_CASE("every part of a VUNet is trained but the block that no group uses") {
  TestRun run(vunet_config(kLosses));
  State before;
  for (const auto& [name, tensor] : run.session.context().networks.tensors("model")) {
    before.emplace(name, tensor.detach().clone());
  }
  run.train();
  for (const auto& [name, tensor] : run.session.context().networks.tensors("model")) {
    CAPTURE(name);
    CHECK(tensor.equal(before.at(name)) == (name.find("auto_blocks.3") != std::string::npos));
  }
}

TEST_CASE("a VUNet that resumes ends with the same bits") {
  const std::string yaml = vunet_config(std::string(kLosses) + "ckpt_freq: 3\n");
  TestRun whole(yaml);
  whole.train();
  const State expected = whole.checkpoint(4);
  TestRun resumed(yaml, whole, 3);
  resumed.train();
  CHECK(differences(expected, resumed.checkpoint(4)) == "");
}

TEST_CASE("evaluations use the mode of eval_mode, training samples of the posterior") {
  const auto prediction = [](const std::string& mode) {
    TestRun run(vunet_config("num_steps: 1\nlosses: {color_L1: {weight: 1}}\neval_mode: " + mode));
    run.train();
    const EvalFile outputs = outputs_after(run, 1);
    VUNet& net = *run.session.context().network<VUNet>();
    const Batch& batch = run.session.context().splits.fixed_examples("validation");
    const int64_t row = batch.indices()[0];
    const VUNet::Inputs inputs{batch["stickman"].slice(0, 0, 1),
                               batch["appearance"].slice(0, 0, 1)};
    const at::Tensor expected = net.forward(inputs, VUNet::Mode::kAppearanceTransfer);
    return at::allclose(outputs.read("outputs/prediction", row, 1), expected, 1e-4, 1e-5);
  };
  CHECK(prediction("appearance_transfer"));
  CHECK_FALSE(prediction("train"));
  CHECK_FALSE(prediction("sample_appearance"));
  CHECK(message_of([] {
          TestRun(vunet_config("num_steps: 1\nlosses: {KL: {weight: 1}}\neval_mode: transfer"));
        }) ==
        "test.yaml:15: eval_mode: expected train, appearance_transfer or sample_appearance, found "
        "\"transfer\"");
}

constexpr const char* kTransfer = R"(
num_steps: 2
losses: {color_L1: {weight: 1}}
log_ops: [{op: validation/transfer_op, when: 2}]
eval_hook:
  eval_op: validation/transfer_op
  eval_callbacks: {matrix: {class: transfer_matrix, poses: 3}, truth: figures_transfer}
)";

TEST_CASE("transfer_op puts the fixed appearances into the poses of all examples") {
  TestRun run(vunet_config(kTransfer));
  run.session.check();
  run.train();
  const EvalFile outputs = outputs_after(run, 2);
  const at::Tensor transfer = outputs.read("outputs/transfer");
  REQUIRE((transfer.sizes() == at::IntArrayRef{6, 2, 3, 32, 32}));
  const Context& context = run.session.context();
  const Batch& fixed = context.splits.fixed_examples("validation");
  VUNet& net = *context.network<VUNet>();
  net.eval();
  for (const int64_t row : {0, 5}) {
    Random random(0);
    const Example example = context.dataset("validation").get(row, random);
    for (const int64_t r : {0, 1}) {
      CHECK(outputs.read("outputs/appearance_index")[row][r].item<int64_t>() ==
            fixed.indices()[static_cast<size_t>(r)]);
      const at::Tensor expected = net.forward(
          {example.tensors.at("stickman").unsqueeze(0), fixed["appearance"].slice(0, r, r + 1)},
          VUNet::Mode::kAppearanceTransfer);
      CHECK(at::allclose(transfer[row][r], expected[0], 1e-4, 1e-5));
    }
  }

  const std::filesystem::path evaluation =
      *std::filesystem::directory_iterator(run.root() + "/eval");
  const at::Tensor matrix = read_image((evaluation / "2/matrix/transfer_0000002.png").string());
  CHECK((matrix.sizes() == at::IntArrayRef{3, 3 * 32, 4 * 32}));
  const at::Tensor inside = image_grid(transfer[2][1].unsqueeze(0));  // pose 2, appearance 1
  CHECK(image_grid(matrix.unsqueeze(0)).slice(0, 64, 96).slice(1, 96, 128).equal(inside));
  const at::Tensor logged =
      read_image(run.root() + "/train/validation/transfer_op/transfer_0000002.png");
  CHECK((logged.sizes() == at::IntArrayRef{3, 3 * 32, 3 * 32}));

  const auto metrics = run.metrics().back();
  const auto truth = [&](const std::string& name) {
    return metrics.at("validation/transfer_op/truth/" + name).get<double>();
  };
  // What is copied does not depend on the network: half of the picture is right.
  CHECK(truth("psnr_of_copied_appearance") > 5);
  CHECK(truth("psnr_of_copied_pose") > 5);
  CHECK(truth("psnr_of_copied_pose") < 30);
  CHECK(truth("psnr") > 0);
}

TEST_CASE("pictures of inputs that are no colour images") {
  const at::Tensor four = at::arange(8.).view({2, 4, 1, 1});
  CHECK(vunet::shown(four).flatten(1).equal(four.slice(1, 0, 3).flatten(1)));
  CHECK(vunet::shown(four.slice(1, 0, 2))
            .flatten(1)
            .equal(at::tensor({1., 1., 1., 5., 5., 5.}).view({2, 3})));
  const at::Tensor grey = at::arange(2.).view({2, 1, 1, 1});
  const at::Tensor images = at::arange(4.).view({2, 2, 1, 1, 1}).expand({2, 2, 3, 1, 1}) + 10;
  const at::Tensor matrix = vunet::transfer_matrix(grey, grey + 5, images);
  REQUIRE((matrix.sizes() == at::IntArrayRef{1, 3, 3, 3}));
  CHECK(matrix[0][1].flatten().equal(at::tensor({1., 5., 6., 0., 10., 11., 1., 12., 13.})));
}

}  // namespace vunet_iterator_test
}  // namespace stepop
