// VQ-VAE 2 against DL-Art-School's own, whose values tests/data/vqvae/make.py stored.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "runtime/core/formats/safetensors.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/networks/networks.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/scratch_folder.h"
#include "tests/test_run.h"

namespace stepop {
namespace vqvae_test {

constexpr const char* kNetwork =
    "kwargs: {in_channel: 3, channel: 8, n_res_block: 1, n_res_channel: 4, "
    "codebook_dim: 4, codebook_size: 6}";

const State& stored() {
  static const State tensors =
      load_safetensors(STEPOP_SOURCE_DIR "/tests/data/vqvae/values.safetensors").tensors;
  return tensors;
}
double difference(const at::Tensor& a, const at::Tensor& b) {
  REQUIRE(a.sizes() == b.sizes());
  return (a - b).abs().max().item<double>();
}

/// The stored tensors whose names begin with `prefix`, without it.
State with_prefix(const std::string& prefix) {
  State found;
  for (const auto& [name, tensor] : stored()) {
    if (name.starts_with(prefix)) found[name.substr(prefix.size())] = tensor;
  }
  return found;
}

/// A network with the stored weights.
std::shared_ptr<MultiNetwork> network() {
  const auto module = std::dynamic_pointer_cast<MultiNetwork>(
      models().build(test_config(fmt::format("model: {{class: vqvae, {}}}", kNetwork)), "model"));
  load_tensors("model", tensors_of(*module), with_prefix("before/"));
  return module;
}

at::Tensor images() { return stored().at("images").to(at::kFloat).div(127.5).sub(1); }

TEST_CASE("what the codebooks keep of images, and the commitment loss, are DL-Art-School's") {
  const auto net = network();
  net->eval();
  const auto made = net->forward_all({images()});
  CHECK(difference(made.at(0), stored().at("eval/made")) < 1e-5);
  CHECK(difference(made.at(1), stored().at("eval/commitment")) < 1e-5);
}

TEST_CASE("gradients pass through the codebooks as there") {
  const auto net = network();
  const auto made = net->forward_all({images()});
  ((made.at(0) - images()).square().mean() + 0.25 * made.at(1).mean()).backward();
  for (const auto& parameter : net->named_parameters()) {
    CAPTURE(parameter.key());
    CHECK(difference(parameter.value().grad(), stored().at("gradient/" + parameter.key())) < 1e-5);
  }
}

TEST_CASE("codebooks do not move without a graph, or in evaluation mode") {
  const auto net = network();
  {
    const at::NoGradGuard no_grad;
    net->forward_all({images()});
  }
  net->eval();
  net->forward_all({images()});
  for (const auto& buffer : net->named_buffers()) {
    CHECK(at::equal(buffer.value(), stored().at("before/" + buffer.key())));
  }
}

TEST_CASE("a training by ExtensibleTrainer has the losses, weights and codebooks of its own code") {
  const ScratchFolder folder;
  for (int64_t i = 0; i < 2; ++i) {
    folder.write(fmt::format("pictures/{}.png", i),
                 encode_png(stored().at("images")[i].permute({1, 2, 0}).contiguous()));
  }
  TestRun run(fmt::format(R"(
iterator: ExtensibleTrainer
batch_size: 2
num_steps: 1
log_freq: 1
datasets: {{train: {{class: CorruptedImages, paths: {0}/pictures, force_square: false, disable_flip: true, skip_lq: true}}}}
networks: {{generator: {{type: generator, which_model_G: vqvae, {1}}}}}
steps:
  generator:
    training: generator
    optimizer: sgd
    optimizer_params: {{lr: 0.5, momentum: 0, weight_decay: 0}}
    injectors: {{gen: {{type: generator, generator: generator, in: hq, out: [gen, commitment]}}}}
    losses:
      pixels: {{type: pix, criterion: l2, weight: 1, real: hq, fake: gen}}
      commitment: {{type: direct, weight: 0.25, key: commitment}}
)",
                          folder.path(), kNetwork));
  const auto& module = run.session.context().networks.get("generator");
  load_tensors("generator", tensors_of(*module), with_prefix("before/"));
  run.train();
  const auto line = run.metrics().at(0);
  CHECK(line.at("train/train_op/loss_pixels").get<double>() ==
        doctest::Approx(stored().at("pixels").item<double>()).epsilon(1e-5));
  CHECK(line.at("train/train_op/loss_commitment").get<double>() ==
        doctest::Approx(stored().at("commitment").item<double>()).epsilon(1e-5));
  const State made = run.checkpoint(1);
  for (const auto& [name, expected] : with_prefix("after/")) {
    CAPTURE(name);
    CHECK(difference(made.at("generator." + name), expected) < 1e-5);
  }
}

TEST_CASE("images whose sides are no multiples of 8 are refused") {
  CHECK(message_of([] {
          network()->forward_all({at::zeros({1, 3, 16, 20})});
        }) == "vqvae needs images whose sides are multiples of 8, found float32 [1, 3, 16, 20]");
}

}  // namespace vqvae_test
}  // namespace stepop
