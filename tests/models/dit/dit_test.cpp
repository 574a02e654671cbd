// DiT against torch_dit.py, whose values are in tests/data/dit; and what flows through it.
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <string>

#include "iterators/diffusion/guidance.h"
#include "iterators/diffusion/rectified_flow.h"
#include "runtime/core/formats/safetensors.h"
#include "runtime/train/networks/network.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/test_run.h"

namespace stepop {
namespace dit_test {

std::shared_ptr<MultiNetwork> build(const std::string& params) {
  return std::dynamic_pointer_cast<MultiNetwork>(
      models().build(test_config("model: " + params), "model"));
}

void compare(const std::string& file, const std::string& params) {
  CAPTURE(file);
  const State tensors =
      load_safetensors(STEPOP_SOURCE_DIR "/tests/data/dit/" + file + ".safetensors").tensors;
  const auto network = build(params);
  State weights;
  for (const auto& [name, tensor] : tensors) {
    if (name.starts_with("weights.")) weights[name.substr(8)] = tensor;
  }
  CHECK(at::allclose(tensors_of(*network).at("pos_embed"), weights.at("pos_embed"), 1e-5, 1e-6));
  load_tensors("model", tensors_of(*network), weights);  // throws for a missing name
  std::vector<at::Tensor> inputs{tensors.at("inputs.x"), tensors.at("inputs.timesteps")};
  if (tensors.contains("inputs.y")) inputs.push_back(tensors.at("inputs.y"));
  const at::Tensor output = network->forward_all(inputs).at(0);
  CHECK(at::allclose(output, tensors.at("output"), 1e-4, 1e-5));
  (output * tensors.at("direction")).sum().backward();
  for (const auto& parameter : network->named_parameters()) {
    CAPTURE(parameter.key());
    CHECK(at::allclose(parameter.value().grad(), tensors.at("gradients." + parameter.key()), 1e-3,
                       1e-4));
  }
}

TEST_CASE("a diffusion transformer has the values and gradients of that in PyTorch") {
  compare("classes",
          "{class: DiT, image_size: [4, 6], channels: 1, hidden_size: 8, depth: 2, num_heads: 2, "
          "num_classes: 3}");
  compare("plain",
          "{class: DiT, image_size: [3, 3], channels: 2, patch_size: 1, hidden_size: 4, depth: 1, "
          "num_heads: 1}");
}

TEST_CASE("a diffusion transformer begins with 0, and refuses what does not fit") {
  const auto network = build(
      "{class: DiT, image_size: [4, 4], channels: 1, hidden_size: 8, depth: 1, num_heads: 2}");
  const at::Tensor x = at::randn({2, 1, 4, 4});
  const at::Tensor t = at::zeros({2});
  CHECK(at::equal(network->forward_all({x, t})[0], at::zeros({2, 1, 4, 4})));
  CHECK(message_of([&] {
          network->forward_all({at::zeros({2, 1, 4, 6}), t});
        }).starts_with("DiT: expected images [B, 1, 4, 4], found "));
  CHECK(message_of([&] {
          network->forward_all({x, t, at::zeros({2}, at::kLong)});
        }) == "DiT: classes are given, but num_classes is 0");
  CHECK(message_of([] { build("{class: DiT, image_size: [5, 4]}"); })
            .ends_with("model/image_size: expected [height, width], multiples of patch_size, 2, "
                       "found [5, 4]"));
  CHECK(message_of([] {
          build("{class: DiT, hidden_size: 10}");
        }).ends_with("model/hidden_size: expected a multiple of 4 and of num_heads, 6, found 10"));
}

TEST_CASE("a flow along straight lines arrives where they end, in any number of steps") {
  const at::Tensor data = at::randn({3, 2, 2});
  const at::Tensor noise = at::randn({3, 2, 2});
  const auto exact = [&](const at::Tensor& x, const at::Tensor&) {
    CHECK(x.sizes() == noise.sizes());
    return noise - data;
  };
  for (const int64_t steps : {1, 3, 20}) {
    CHECK(at::allclose(diffusion::sample_flow(exact, noise, steps), data, 1e-5, 1e-5));
  }
  const at::Tensor t = at::linspace(0, 1, 3);
  CHECK(at::equal(diffusion::point_on_line(data, noise, t)[0], data[0]));
  CHECK(at::equal(diffusion::point_on_line(data, noise, t)[2], noise[2]));
  CHECK(diffusion::rectified_flow_loss(exact, data, noise, t).max().item<double>() < 1e-12);

  // For data of N(0, s^2) the velocity is known, and so is what its flow makes of a number.
  const double s = 0.5;
  const auto of_normal = [&](const at::Tensor& x, const at::Tensor& times) {
    const at::Tensor time = times.view({-1, 1, 1});
    const at::Tensor variance = (1 - time).square() * s * s + time.square();
    return x * (time - (1 - time) * s * s) / variance;
  };
  const at::Tensor made = diffusion::sample_flow(of_normal, noise, 2000);
  CHECK(at::allclose(made, noise * s, 1e-2, 1e-3));
}

TEST_CASE("guidance moves a prediction away from that without a class") {
  const diffusion::ConditionalModel model = [](const at::Tensor& x, const at::Tensor&,
                                               const at::Tensor& classes) {
    // The mean of a class, and in a further channel its variance.
    return classes.to(at::kFloat).view({-1, 1, 1, 1}).expand({x.size(0), 2, 2, 2});
  };
  const at::Tensor classes = at::tensor({1, 2}, at::kLong);
  const at::Tensor x = at::zeros({2, 1, 2, 2});
  const at::Tensor t = at::zeros({2});
  const at::Tensor guided = diffusion::with_guidance(model, classes, 5, 3)(x, t);
  // 5 + 3 (1 - 5) and 5 + 3 (2 - 5); the further channel stays.
  CHECK(guided[0][0][0][0].item<double>() == -7);
  CHECK(guided[1][0][0][0].item<double>() == -4);
  CHECK(guided[0][1][0][0].item<double>() == 1);
  CHECK(at::equal(diffusion::with_guidance(model, classes, 5, 1)(x, t), model(x, t, classes)));
  const at::Tensor many = at::zeros({4000}, at::kLong);
  const auto dropped = diffusion::drop_classes(many, 5, 0.25).eq(5).sum().item<int64_t>();
  CHECK(dropped > 850);
  CHECK(dropped < 1150);
}

}  // namespace dit_test
}  // namespace stepop
