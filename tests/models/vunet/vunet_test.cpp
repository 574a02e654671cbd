#include "models/vunet/vunet.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cmath>

#include "runtime/core/formats/safetensors.h"
#include "runtime/train/checkpoint/tracker.h"
#include "runtime/train/networks/generators.h"
#include "runtime/train/networks/init_from.h"
#include "runtime/train/networks/networks.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/python.h"
#include "tests/tensor_values.h"
#include "tests/test_run.h"

namespace stepop {
namespace vunet_vunet_test {

using Mode = VUNet::Mode;

VUNet build(const std::string& params) {
  const Config config = test_config(params);
  return {read_parameters<VUNet::Params>(config), config};
}

/// What torch_vunet.py stored of a network, and ours with its weights.
struct Stored {
  explicit Stored(const std::string& kind)
      : path(STEPOP_SOURCE_DIR "/tests/data/vunet/" + kind + ".safetensors"),
        tensors(load_safetensors(path).tensors),
        config(test_config("model: {class: VUNet, spatial_size: 8, nf_start: 2, nf_max: 4, "
                           "final_act: " +
                           std::string(kind == "plain" ? "true" : "false") +
                           "}\ninit_from: {path: " + path + ", prefix: weights.}\n")),
        networks(config, c10::kCPU, tracker) {
    report = InitFrom(config, networks).apply();
    net = std::dynamic_pointer_cast<VUNet>(networks.get("model"));
  }

  at::Tensor forward(Mode mode) const {
    return net->forward({tensors.at("pose"), tensors.at("appearance")}, mode);
  }

  std::string path;
  State tensors;
  Config config;
  Tracker tracker;
  Networks networks;
  std::string report;
  std::shared_ptr<VUNet> net;
};

bool close(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && at::allclose(a, b, /*rtol=*/1e-5, /*atol=*/1e-5);
}

TEST_CASE("weights of a VUNet in PyTorch load by name and give its image, means and gradients") {
  for (const std::string kind : {"plain", "normalized"}) {
    CAPTURE(kind);
    const Stored stored(kind);
    const std::string count = kind == "plain" ? "128" : "320";
    CHECK(stored.report == "model: " + count + " of " + count + " tensors from " + stored.path);

    const at::Tensor image = stored.forward(Mode::kAppearanceTransfer);
    CHECK(close(image, stored.tensors.at("image")));
    const auto& [q, p] = stored.net->saved_tensors();
    at::Tensor loss = (image * stored.tensors.at("direction")).sum();
    for (const std::string stage : {"s4", "s3"}) {
      CHECK(close(q.at(stage), stored.tensors.at("q_means." + stage)));
      CHECK(close(p.at(stage), stored.tensors.at("p_means." + stage)));
      loss = loss + (p.at(stage) - q.at(stage)).square().sum() / 2;
    }
    loss.backward();
    for (const auto& parameter : stored.net->named_parameters()) {
      CAPTURE(parameter.key());
      const auto found = stored.tensors.find("gradients." + parameter.key());
      REQUIRE(parameter.value().grad().defined() == (found != stored.tensors.end()));
      if (found != stored.tensors.end()) CHECK(close(parameter.value().grad(), found->second));
    }
  }
}

TEST_CASE("the modes that draw random numbers draw as the VUNet in PyTorch does") {
  for (const std::string kind : {"plain", "normalized"}) {
    CAPTURE(kind);
    const ScratchFolder folder;
    const Stored stored(kind);
    run_python(
        "import runpy, sys; sys.argv = sys.argv[1:]; "
        "runpy.run_path(sys.argv[0], run_name='__main__')",
        {STEPOP_SOURCE_DIR "/tests/models/vunet/torch_vunet.py", "draw", stored.path,
         folder / "drawn"});
    const State drawn = load_safetensors(folder / "drawn").tensors;
    for (const auto& [name, expected] : drawn) {
      CAPTURE(name);
      seed_generators(7, c10::kCPU);
      CHECK(close(stored.forward(VUNet::mode_of(name)), expected));
      CHECK_FALSE(close(stored.forward(VUNet::mode_of(name)), expected));
    }
    CHECK(
        stored.forward(Mode::kAppearanceTransfer).equal(stored.forward(Mode::kAppearanceTransfer)));
  }
}

TEST_CASE("every stage of a VUNet halves the width of the one before, down to one pixel") {
  const at::NoGradGuard no_grad;
  for (const int64_t size : {4, 8, 32}) {
    CAPTURE(size);
    const vunet::Options options{
        .stages = 1 + static_cast<int64_t>(std::log2(size)), .nf_start = 4, .nf_max = 8};
    const vunet::Encoder encoder(options, 3);
    const vunet::Features features = encoder.forward(at::zeros({2, 3, size, size}));
    CHECK(static_cast<int64_t>(features.size()) == 2 * options.stages);
    for (int64_t stage = 1; stage <= options.stages; ++stage) {
      const int64_t width = size >> (stage - 1);
      for (const int64_t block : {1, 2}) {
        CHECK((features.at(vunet::block_name(stage, block)).sizes() ==
               at::IntArrayRef{2, stage == 1 ? 4 : 8, width, width}));
      }
    }
    const auto posterior = vunet::ZConverter(options).forward(features, true);
    const auto prior = vunet::Bottleneck(options).forward(features, &posterior.z);
    for (const auto& latents : {posterior.means, posterior.z, prior.means}) {
      CHECK((latents.at(vunet::stage_name(options.stages)).sizes() == at::IntArrayRef{2, 8, 1, 1}));
      CHECK((latents.at(vunet::stage_name(options.stages - 1)).sizes() ==
             at::IntArrayRef{2, 32, 1, 1}));
    }
    CHECK((prior.features.sizes() == at::IntArrayRef{2, 8, 2, 2}));
    const at::Tensor image =
        vunet::Decoder(options, 3, /*has_tanh=*/true).forward(prior.features, features);
    CHECK((image.sizes() == at::IntArrayRef{2, 3, size, size}));
  }
}

TEST_CASE("space-to-depth puts the pixel of a block before the channel, depth-to-space undoes it") {
  // Channel c, row y, column x holds 100 c + 10 y + x.
  const at::Tensor x = at::arange(2).view({1, 2, 1, 1}) * 100 +
                       at::arange(4).view({1, 1, 4, 1}) * 10 + at::arange(2).view({1, 1, 1, 2});
  const at::Tensor deep = vunet::space_to_depth(x);
  CHECK((deep.sizes() == at::IntArrayRef{1, 8, 2, 1}));
  CHECK((values_of<int64_t>(deep) == std::vector<int64_t>{0, 20, 100, 120, 1, 21, 101, 121, 10, 30,
                                                          110, 130, 11, 31, 111, 131}));
  CHECK(vunet::depth_to_space(deep).equal(x));
}

TEST_CASE("a VUNet's dropout is there in training only") {
  VUNet net = build("{spatial_size: 4, nf_start: 2, nf_max: 4, dropout_prob: 0.5}");
  const at::Tensor images = at::rand({1, 3, 4, 4});
  const auto forward = [&] { return net.forward({images, images}, Mode::kAppearanceTransfer); };
  CHECK_FALSE(forward().equal(forward()));
  net.eval();
  CHECK(forward().equal(forward()));
}

TEST_CASE("the pose and the appearance may have other numbers of channels than the image") {
  VUNet net =
      build("{spatial_size: 4, nf_start: 2, nf_max: 4, img_channels: 4, pose_channels: 18}");
  CHECK((net.forward({at::zeros({2, 18, 4, 4}), at::zeros({2, 4, 4, 4})}).sizes() ==
         at::IntArrayRef{2, 3, 4, 4}));
}

TEST_CASE("what a VUNet cannot be built of, or given, is told") {
  const auto refused = [](const std::string& params) { return message_of([&] { build(params); }); };
  CHECK(refused("{spatial_size: 96}") ==
        "test.yaml:1: spatial_size: expected a power of two, 4 or more, as every stage halves the "
        "images down to one pixel; found 96");
  CHECK(refused("{spatial_size: 2}").ends_with("found 2"));
  CHECK(refused("{nf_start: 32}") ==
        "test.yaml:1: nf_start: expected half of nf_max, as the decoder halves its nf_max = 128 "
        "channels for the first stage and joins it with nf_start; found 32");
  CHECK(refused("{dropout_prob: 1}") ==
        "test.yaml:1: dropout_prob: expected a number from 0 to below 1, found 1");
  CHECK(message_of([] { VUNet::mode_of("transfer"); }) ==
        "unknown mode of VUNet \"transfer\"; expected train, appearance_transfer or "
        "sample_appearance");

  VUNet net = build("{spatial_size: 4, nf_start: 2, nf_max: 4}");
  const at::Tensor good = at::zeros({1, 3, 4, 4});
  CHECK(message_of([&] {
          net.forward({at::zeros({1, 3, 8, 8}), good});
        }) ==
        "VUNet: expected pose of [B, 3, 4, 4], as spatial_size and the channels of the model say, "
        "found float32 [1, 3, 8, 8]");
  CHECK(message_of([&] {
          net.forward({good, at::zeros({3, 4, 4})});
        }) ==
        "VUNet: expected appearance of [B, 3, 4, 4], as spatial_size and the channels of the model "
        "say, found float32 [3, 4, 4]");
}

}  // namespace vunet_vunet_test
}  // namespace stepop
