#include "runtime/tools/export/exported_network.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "runtime/core/formats/safetensors.h"
#include "runtime/tools/export/onnx.h"
#include "runtime/tools/export/torch_export.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/step/random_fork.h"
#include "tests/message_of.h"
#include "tests/python.h"
#include "tests/same_state.h"
#include "tests/scratch_folder.h"
#include "tests/test_run.h"

namespace stepop {
namespace exported_network_test {

using Forward = std::function<at::Tensor(torch::nn::Linear&, const at::Tensor&)>;

/// A network of one layer [B, 4] -> [B, 4], and what its forward makes of that.
class Small : public Network {
 public:
  explicit Small(Forward forward)
      : layer_(register_module("layer", torch::nn::Linear(4, 4))), forward_(std::move(forward)) {}
  at::Tensor forward(const at::Tensor& x) override { return forward_(layer_, x); }

 private:
  torch::nn::Linear layer_;
  Forward forward_;
};

ExportedNetwork exported(const Forward& forward, const at::Tensor& examples) {
  Small network(forward);
  return export_network(network, "Small", {{examples}});
}

TEST_CASE("sizes that a network computes from its batch follow it in the file") {
  const auto found = exported(
      [](auto& layer, const auto& x) {
        const int64_t batch = x.size(0);
        const auto y = layer(x).view({batch * 2, 2}) + at::zeros({2 * batch, 1}, x.options());
        return at::cat({y.view({batch, 4}), at::zeros({batch, 1}, x.options())}, 1);
      },
      at::randn({8, 4}));
  CHECK(found.has_free_batch);
  CHECK(found.warnings.empty());
  CHECK(found.input_shapes == std::vector<std::string>{"float32 [batch, 4]"});
  CHECK(found.output_shapes == std::vector<std::string>{"float32 [batch, 5]"});
  CHECK(found.compared == std::vector<std::string>{"other examples", "batches of 1 and 5"});
  CHECK(found.notes == std::vector<std::string>{
                           "forward makes tensors on the device cpu: the file works there, not on "
                           "another one"});
}

TEST_CASE("a batch size that stays in the file is named") {
  const auto found = exported(
      [](auto& layer, const auto& x) {
        at::Tensor sum = layer(x);
        for (int64_t i = 0; i < x.size(0); ++i) sum = sum + x[i];
        return sum;
      },
      at::randn({6, 4}));
  CHECK_FALSE(found.has_free_batch);
  CHECK(found.input_shapes == std::vector<std::string>{"float32 [6, 4]"});
  CHECK(found.warnings ==
        std::vector<std::string>{"a batch of 6 is part of the file, as forward computes with this "
                                 "number: it is wrong for, or refuses, other numbers of examples"});
}

TEST_CASE("a network that decides by the values of tensors is refused") {
  at::Tensor examples = at::zeros({8, 4}) + 1;
  examples.narrow(0, 2, 6).neg_();
  const std::string message = message_of([&] {
    exported(
        [](auto& layer, const auto& x) {
          return x.sum().template item<float>() > 0 ? layer(x) : layer(x) * 2;
        },
        examples);
  });
  CAPTURE(message);
  CHECK(message.starts_with(
      "the traced network gives other outputs than the network itself, for other examples than "
      "those with which it was traced; forward reads values of tensors (_local_scalar_dense, item) "
      "and decides by them, which no trace holds: they differ by 0.5 of the largest output"));
}

TEST_CASE("values that were read and changed nothing are a warning, random numbers another") {
  const auto found = exported(
      [](auto& layer, const auto& x) {
        if (x.sum().template item<float>() > 1e9) return x;
        return layer(x) + at::randn_like(x);
      },
      at::randn({8, 4}));
  CHECK(found.is_random);
  CHECK(found.warnings ==
        std::vector<std::string>{
            "forward reads values of tensors (_local_scalar_dense, item): if it decides by them, "
            "the file has the decisions of the first example",
            "forward draws random numbers (randn_like): each call of the file gives other outputs, "
            "as of the network; they were compared with the same seed"});
}

TEST_CASE("sizes of images that stay in the file are named, those that do not are tried") {
  const at::Tensor images = at::randn({6, 1, 8, 8});
  class Images : public Network {
   public:
    explicit Images(bool is_fixed)
        : layer_(register_module("layer",
                                 torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 1, 3).padding(1)))),
          is_fixed_(is_fixed) {}
    at::Tensor forward(const at::Tensor& x) override {
      const auto y = layer_(x);
      if (is_fixed_) return y.flatten(2).narrow(2, 0, x.size(2) * x.size(3));
      return at::upsample_nearest2d(y, {2 * x.size(2), 3 * x.size(3)});
    }

   private:
    torch::nn::Conv2d layer_;
    bool is_fixed_;
  };
  Images fixed(true);
  CHECK(export_network(fixed, "Images", {{images}}).warnings ==
        std::vector<std::string>{
            "images of 8 x 8 are part of the file, as forward computes with their height and "
            "width: the network takes others (4 x 4), the file does not"});
  Images free(false);
  const auto found = export_network(free, "Images", {{images}});
  CHECK(found.warnings.empty());
  CHECK(found.compared.back() == "images of 4 x 4");
}

TEST_CASE("what cannot be traced says what is in the way") {
  const at::Tensor secret = at::zeros({4}).set_requires_grad(true);
  CHECK(
      message_of([&] {
        exported([&](auto& layer, const auto& x) { return layer(x) + secret; }, at::randn({4, 4}));
      }) ==
      "forward uses a tensor that requires a gradient and is no parameter of the network: "
      "register_parameter in its constructor makes it one");
  torch::nn::LinearImpl linear(2, 2);
  CHECK(message_of([&] {
          export_network(linear, "Linear", {{at::zeros({1, 2})}});
        }).starts_with("it derives from neither stepop::Network nor stepop::MultiNetwork"));
}

/// The networks of this tree: name -> config, and one of their calls.
struct Case {
  std::string name;
  std::string params;
  NetworkInputs inputs;
};

std::vector<Case> cases() {
  const auto image = [](int64_t channels, int64_t size) {
    return at::rand({7, channels, size, size}) * 2 - 1;
  };
  const std::string unet = "{class: UnetGenerator, features: 2, n_downs: 3, input_size: 32";
  const at::Tensor times = at::randint(0, 1000, {7});
  const std::string diffusion =
      "in_channels: 3, out_channels: 6, model_channels: 32, num_res_blocks: 1, "
      "attention_resolutions: [2], channel_mult: [1, 2], num_heads: 2";
  return {
      {"lenet", "{class: LeNet, image_size: [8, 8], padding: [2, 2]}", {image(1, 8)}},
      {"mlp", "{class: MLP, inputs: 12, hidden: [5], classes: 3}", {image(3, 2)}},
      {"rrdb", "{class: RRDBNet, nf: 8, gc: 4, nb: 1, in_nc: 3, out_nc: 3}", {image(3, 8)}},
      {"vgg", "{class: discriminator_vgg_128, in_nc: 3, nf: 4}", {image(3, 128)}},
      {"patch", "{class: PatchGan, base_channels: 4, n_layers: 3}", {image(3, 32), image(3, 32)}},
      {"unet", unet + "}", {image(3, 32)}},
      {"residual", unet + ", block_type: ResidualUnetBlock}", {image(3, 32)}},
      {"bilinear", unet + ", upconv_type: Bilinear}", {image(3, 32)}},
      {"vunet",
       "{class: VUNet, spatial_size: 8, nf_start: 4, nf_max: 8}",
       {image(3, 8), image(3, 8)}},
      {"normalized",
       "{class: VUNet, spatial_size: 8, nf_start: 4, nf_max: 8, final_act: false, dropout_prob: "
       "0.2}",
       {image(3, 8), image(3, 8)}},
      {"diffusion", "{class: UNetModel, " + diffusion + "}", {image(3, 8), times}},
      {"classes",
       "{class: UNetModel, num_classes: 4, use_scale_shift_norm: true, " + diffusion + "}",
       {image(3, 8), times, at::randint(0, 4, {7})}},
      {"super",
       "{class: unet_diffusion, num_corruptions: 1, " + diffusion + "}",
       {image(3, 8), times, image(3, 4)}},
  };
}

constexpr const char* kCompare = R"py(
import sys, warnings, torch
from safetensors.torch import load_file
warnings.simplefilter("ignore", FutureWarning)  # PyTorch 2.15 of torch.jit.load
for name in sys.argv[2:]:
    net = torch.jit.load(f"{sys.argv[1]}/{name}.pt")
    assert not net.training, name
    values = load_file(f"{sys.argv[1]}/{name}.safetensors")
    weights = {k[8:]: v for k, v in values.items() if k.startswith("weights.")}
    state = net.state_dict()
    assert weights.keys() == state.keys(), name
    assert all(torch.equal(v, state[k]) for k, v in weights.items()), name
    for size in ("few", "many"):
        inputs = [values[k] for k in sorted(values) if k.startswith(f"{size}.input")]
        with torch.no_grad():
            made = [net(*inputs) for _ in range(2)][-1]
        expected = values[f"{size}.output"]
        share = ((made - expected).abs().max() / expected.abs().max()).item()
        print(name, size, "ok" if share <= 1e-5 else share)
)py";

TEST_CASE("every network of the tree is exported, and Python computes the same with it") {
  const RandomFork random(3, c10::kCPU);
  const at::NoGradGuard no_grad;
  const ScratchFolder folder;
  std::vector<std::string> arguments{folder.path()};
  std::string expected;
  for (const auto& [name, params, inputs] : cases()) {
    CAPTURE(name);
    const auto network = models().build(test_config("model: " + params), "model");
    for (auto& parameter : network->parameters()) {
      parameter.add_(at::randn(parameter.sizes()) * 0.02);  // some begin as zeros
    }
    const auto found = export_network(*network, name, {inputs});
    CHECK(found.has_free_batch);
    for (const auto& warning : found.warnings) {
      CHECK(warning.find(" are part of the file") != std::string::npos);
    }
    folder.write(name + ".pt", found.file);
    State values;
    for (const auto& [key, tensor] : tensors_of(*network)) {
      values["weights." + key] = tensor.contiguous();
    }
    network->eval();
    for (const auto& [size, rows] : {std::pair{"few", int64_t{1}}, std::pair{"many", int64_t{6}}}) {
      const NetworkInputs taken = take_rows({inputs}, 1, rows);
      for (size_t i = 0; i < taken.size(); ++i) {
        values[fmt::format("{}.input_{}", size, i)] = taken[i];
      }
      values[fmt::format("{}.output", size)] = call_network(*network, taken).front().contiguous();
      expected += fmt::format("{} {} ok\n", name, size);
    }
    save_safetensors(folder.path(name + ".safetensors"), values);
    arguments.push_back(name);
  }
  CHECK(run_python(kCompare, arguments) == expected);
}

TEST_CASE("norms of groups, attention and upsampling by a scale become ONNX") {
  const RandomFork random(3, c10::kCPU);
  const at::NoGradGuard no_grad;
  const ScratchFolder folder;
  for (const auto& [name, params, inputs] : cases()) {
    if (name != "bilinear" && name != "classes") continue;
    CAPTURE(name);
    const auto network = models().build(test_config("model: " + params), "model");
    for (auto& parameter : network->parameters()) {
      parameter.add_(at::randn(parameter.sizes()) * 0.02);
    }
    const auto report =
        write_onnx(export_network(*network, name, {inputs}), folder.path(name + ".onnx"), {}, {});
    CHECK(report.most_difference > 0);
    CHECK(report.most_difference < kMostOnnxDifference);
  }
}

TEST_CASE("a program of torch.export is a network here again, of the same names and numbers") {
  const RandomFork random(3, c10::kCPU);
  const at::NoGradGuard no_grad;
  const ScratchFolder folder;
  for (const auto& [name, params, inputs] : cases()) {
    if (name != "classes" && name != "normalized") continue;  // all others do, but take two minutes
    CAPTURE(name);
    const auto network = models().build(test_config("model: " + params), "model");
    for (auto& parameter : network->parameters()) {
      parameter.add_(at::randn(parameter.sizes()) * 0.02);
    }
    const std::string path = folder.path(name + ".pt2");
    CHECK(write_torch_export(export_network(*network, name, {inputs}), path, {}) < kMostDifference);
    const auto loaded =
        models().build(test_config("model: {class: Exported, path: " + path + "}"), "model");
    CHECK(loaded->parameters().size() > network->parameters().size() / 2);
    State used = tensors_of(*network);  // those that the evaluation uses
    const State theirs = tensors_of(*loaded);
    std::erase_if(used, [&](const auto& each) { return !theirs.contains(each.first); });
    CHECK(differences(theirs, used) == "");
    network->eval();
    loaded->eval();
    const NetworkInputs few = take_rows({inputs}, 1, 3);
    const at::Tensor expected = call_network(*network, few).front();
    const double scale = expected.abs().max().item<double>();
    CHECK((call_network(*loaded, few).front() - expected).abs().max().item<double>() <
          1e-5 * scale);
  }
}

TEST_CASE("an exported file is a network that a config names by TorchScript") {
  const ScratchFolder folder;
  const auto network = models().build(
      test_config("model: {class: MLP, inputs: 4, hidden: [3], classes: 2}"), "model");
  const at::Tensor x = at::randn({5, 4});
  folder.write("net.pt", export_network(*network, "MLP", {{x}}).file);
  const auto loaded = models().build(
      test_config(fmt::format("model: {{class: TorchScript, path: {}}}", folder.path("net.pt"))),
      "model");
  loaded->eval();
  const at::NoGradGuard no_grad;
  CHECK(call_network(*loaded, {x}).front().equal(call_network(*network, {x}).front()));
  CHECK(tensors_of(*loaded).size() == 4);
  // And back out.
  CHECK(export_network(*loaded, "TorchScript", {{x}}).has_free_batch);
}

}  // namespace exported_network_test
}  // namespace stepop
