// The networks of pix2pix against torch_pix2pix.py, whose values are in tests/data/pix2pix.
#include <ATen/ops/allclose.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/core/formats/safetensors.h"
#include "runtime/train/networks/network.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/test_run.h"

namespace stepop {
namespace pix2pix_networks_test {

std::shared_ptr<torch::nn::Module> build(const std::string& params) {
  return models().build(test_config("model: " + params), "model");
}

int64_t size_of(const torch::nn::Module& network) {
  int64_t count = 0;
  for (const auto& parameter : network.parameters()) count += parameter.numel();
  return count;
}

/// A small network with the weights that Python stored, and what Python made of its inputs. Both
/// compute in float64: before an instance norm of few pixels a gradient in float32 is nearly
/// nothing but rounding, which differs from one kind of processor to the next.
struct Stored {
  Stored(const std::string& file, const std::string& params)
      : tensors(load_safetensors(STEPOP_SOURCE_DIR "/tests/data/pix2pix/" + file + ".safetensors")
                    .tensors),
        network(build(params)) {
    const std::string prefix = "weights.";
    State weights;
    for (const auto& [name, tensor] : tensors) {
      if (name.starts_with(prefix)) weights[name.substr(prefix.size())] = tensor;
    }
    load_tensors("model", tensors_of(*network), weights);
    network->to(at::kDouble);
    for (auto& [name, tensor] : tensors) tensor = tensor.to(at::kDouble);
    network->eval();
  }

  void check(const at::Tensor& output) const {
    CHECK(at::allclose(output, tensors.at("output"), 1e-6, 1e-7));
    (output * tensors.at("direction")).sum().backward();
    double largest = 0;
    for (const auto& [name, tensor] : tensors) {
      if (name.starts_with("gradients.")) {
        largest = std::max(largest, tensor.abs().max().item<double>());
      }
    }
    for (const auto& parameter : network->named_parameters()) {
      CAPTURE(parameter.key());
      CHECK(at::allclose(parameter.value().grad(), tensors.at("gradients." + parameter.key()), 1e-6,
                         1e-7 * largest));
    }
  }

  State tensors;
  std::shared_ptr<torch::nn::Module> network;
};

TEST_CASE(
    "generators have the outputs and gradients of those in PyTorch, whose weights they load") {
  const std::string base = "{class: UnetGenerator, features: 1, n_downs: 3, input_size: 32";
  for (const auto& [file, more] : std::vector<std::pair<std::string, std::string>>{
           {"unet", ""},
           {"unet_bilinear", ", upconv_type: Bilinear"},
           {"residual", ", block_type: ResidualUnetBlock"},
           {"residual_bilinear", ", block_type: ResidualUnetBlock, upconv_type: Bilinear"}}) {
    CAPTURE(file);
    const Stored stored(file, base + more + "}");
    const at::Tensor image =
        dynamic_cast<Network&>(*stored.network).forward(stored.tensors.at("x"));
    CHECK(image.abs().max().item<double>() <= 1);
    stored.check(image);
  }
}

TEST_CASE("with tanh: convolution a residual generator makes NectarGAN's pictures of its weights") {
  for (const std::string type : {"Transposed", "Bilinear"}) {
    CAPTURE(type);
    const std::string params =
        "{class: UnetGenerator, features: 1, n_downs: 3, block_type: ResidualUnetBlock, "
        "upconv_type: " +
        type;
    const std::string file =
        type == "Bilinear" ? "nectargan_residual_bilinear" : "nectargan_residual_transposed";
    const Stored stored(file, params + ", tanh: convolution}");
    auto& network = dynamic_cast<Network&>(*stored.network);
    stored.check(network.forward(stored.tensors.at("x")));
    const Stored bounded(file, params + "}");
    const at::Tensor other =
        dynamic_cast<Network&>(*bounded.network).forward(bounded.tensors.at("x"));
    CHECK((other - bounded.tensors.at("output")).abs().max().item<double>() > 0.01);
  }
  CHECK(message_of([] { build("{class: UnetGenerator, tanh: both}"); }).find("tanh: expected ") !=
        std::string::npos);
}

TEST_CASE("the discriminator has the outputs and gradients of the one in PyTorch") {
  const Stored stored("patchgan",
                      "{class: PatchGan, base_channels: 2, n_layers: 4, max_channels: 8}");
  stored.check(dynamic_cast<MultiNetwork&>(*stored.network)
                   .forward_all({stored.tensors.at("x"), stored.tensors.at("y")})
                   .at(0));
}

TEST_CASE("networks of the usual sizes have as many parameters as NectarGAN's") {
  const auto size = [](const std::string& params) { return size_of(*build(params)); };
  CHECK(size("UnetGenerator") == 54'404'675);
  CHECK(size("{class: UnetGenerator, upconv_type: Bilinear}") == 39'150'979);
  CHECK(size("{class: UnetGenerator, block_type: ResidualUnetBlock}") == 57'547'782);
  CHECK(size("PatchGan") == 665'665);
  CHECK(size("{class: PatchGan, n_layers: 4}") == 2'766'913);
  CHECK(size("{class: PatchGan, n_layers: 5}") == 6'961'217);
}

TEST_CASE("the size of what comes out, and sizes that cannot work") {
  const auto patches = [](int n_layers) {
    const auto network =
        build("{class: PatchGan, base_channels: 1, n_layers: " + std::to_string(n_layers) + "}");
    const at::Tensor image = at::zeros({1, 3, 256, 256});
    return dynamic_cast<MultiNetwork&>(*network).forward_all({image, image})[0].size(2);
  };
  CHECK(patches(2) == 126);
  CHECK(patches(3) == 62);
  CHECK(patches(4) == 30);
  CHECK(message_of([] { build("{class: UnetGenerator, n_downs: 6, input_size: 128}"); }) ==
        "test.yaml:1: model/input_size: expected a multiple of 256, as each of n_downs + 2 = 8 "
        "blocks halves the image, found 128; fewer n_downs take smaller images");
  CHECK(message_of([] {
          const auto network = build("{class: UnetGenerator, features: 1, n_downs: 1}");
          dynamic_cast<Network&>(*network).forward(at::zeros({1, 3, 12, 8}));
        }) ==
        "UnetGenerator: expected images [B, C, H, W] whose height and width are multiples of 8, "
        "2^(n_downs + 2), found float32 [1, 3, 12, 8]");
  // Fewer than three downs, and residuals above the deepest block, work as well.
  for (const std::string kind : {"UnetBlock", "ResidualUnetBlock"}) {
    const auto network =
        build("{class: UnetGenerator, features: 1, n_downs: 1, block_type: " + kind + "}");
    CHECK(dynamic_cast<Network&>(*network).forward(at::zeros({2, 3, 16, 32})).sizes() ==
          at::IntArrayRef{2, 3, 16, 32});
  }
}

TEST_CASE("the discriminator says which of its images it does not take, and by which key") {
  const auto network = build("{class: PatchGan, base_channels: 1, out_channels: 1}");
  const auto message = [&](int64_t in, int64_t out) {
    return message_of([&] {
      dynamic_cast<MultiNetwork&>(*network).forward_all(
          {at::zeros({1, in, 32, 32}), at::zeros({1, out, 32, 32})});
    });
  };
  CHECK(message(1, 1) ==
        "expected images [B, 3, H, W], by model/in_channels, found float32 [1, 1, 32, 32]");
  CHECK(message(3, 3) ==
        "expected images [B, 1, H, W], by model/out_channels, found float32 [1, 3, 32, 32]");
  CHECK(message(3, 1) == "no error");
}

TEST_CASE("dropout is on in training alone, in as many of the deepest blocks as are asked for") {
  const at::Tensor image = at::zeros({1, 3, 32, 32}) + 0.3;
  const auto differs = [&](const std::string& dropouts, bool is_training) {
    const auto network = build(
        "{class: UnetGenerator, features: 4, n_downs: 2, use_dropout_layers: " + dropouts + "}");
    network->train(is_training);
    auto& generator = dynamic_cast<Network&>(*network);
    return !generator.forward(image).equal(generator.forward(image));
  };
  CHECK(differs("3", true));
  CHECK_FALSE(differs("3", false));
  CHECK_FALSE(differs("0", true));
}

}  // namespace pix2pix_networks_test
}  // namespace stepop
