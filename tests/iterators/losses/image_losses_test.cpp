#include "iterators/losses/image_losses.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <doctest/doctest.h>

#include <cmath>

#include "runtime/train/networks/generators.h"
#include "tests/iterators/losses/finite_differences.h"
#include "tests/message_of.h"
#include "tests/tensor_values.h"

namespace stepop::losses {
namespace image_losses_test {

const at::Tensor& ramp() {  // [1, 1, 2, 3]
  static const at::Tensor tensor = at::tensor({0., 1., 4., 2., 2., 1.}).view({1, 1, 2, 3});
  return tensor;
}

TEST_CASE("l1 and l2 are means over all but the examples") {
  const at::Tensor a = at::tensor({1., -1., 3., 0., 2., 2.}).view({2, 3});
  const at::Tensor b = at::tensor({0., 1., 3., 1., 2., -1.}).view({2, 3});
  CHECK((values_of<double>(l1(a, b)) == std::vector<double>{1, 4.0 / 3}));
  CHECK((values_of<double>(l2(a, b)) == std::vector<double>{5.0 / 3, 10.0 / 3}));
}

TEST_CASE("chroma compares colours and not how light they are") {
  const at::Tensor colour = at::tensor({1., 0., -1.}).view({1, 3, 1, 1});  // red, without blue
  const at::Tensor grey = at::zeros_like(colour);
  CHECK(chroma(colour, grey).item<double>() == doctest::Approx(2.0 / 3));
  CHECK(chroma(colour + 0.5, grey).item<double>() == doctest::Approx(2.0 / 3));
  CHECK(chroma(grey + 0.5, grey).item<double>() == doctest::Approx(0));
}

TEST_CASE("the image gradient compares edges by their strength, not by their direction") {
  // Horizontal differences of ramp: 1 3; 0 1. Vertical: 2 1 3.
  CHECK(image_gradient(ramp(), at::zeros_like(ramp())).item<double>() == 5.0 / 4 + 6.0 / 3);
  CHECK(image_gradient(ramp(), ramp().neg()).item<double>() == 0);
  CHECK(image_gradient(ramp(), ramp() + 7).item<double>() == 0);
}

TEST_CASE("sobel and laplacian have the values of their formulas, with zeros around the image") {
  // One bright pixel in the middle of 3 x 3, of one of two channels: grey 3.
  at::Tensor dot = at::zeros({1, 2, 3, 3}, at::kDouble);
  dot[0][1][1][1] = 6;
  const at::Tensor nothing = at::zeros_like(dot);
  const auto length = [](double x, double y) { return std::sqrt(x * x + y * y + 1e-6); };
  const double strengths = 4 * length(3, 3) + 4 * length(6, 0) + length(0, 0);
  CHECK(sobel(dot, nothing).item<double>() == doctest::Approx(strengths / 9 - 1e-3));
  CHECK(laplacian(dot, nothing).item<double>() == doctest::Approx((12 + 4 * 3) / 9.0));
  CHECK(sobel(dot, dot.neg()).item<double>() == doctest::Approx(0));
  CHECK(laplacian(dot, dot.neg()).item<double>() == doctest::Approx(2 * 24 / 9.0));
  // At a border, zeros are the neighbours.
  const at::Tensor even = at::ones({1, 1, 3, 3}, at::kDouble);
  CHECK(laplacian(even, at::zeros_like(even)).item<double>() == doctest::Approx((4 * 2 + 4) / 9.0));
}

TEST_CASE("the divergence of Gaussians of unit variance is half the squared distance of means") {
  const at::Tensor p = at::tensor({1., 2., 0., 3.}).view({2, 2, 1, 1});
  const at::Tensor q = at::tensor({0., 0., 0., 1.}).view({2, 2, 1, 1});
  CHECK((values_of<double>(unit_gaussian_kl(p, q)) == std::vector<double>{2.5, 2}));
  const OrderedMap<at::Tensor> stages_of_p{{"s2", p}, {"s1", q}};
  const OrderedMap<at::Tensor> stages_of_q{{"s1", p}, {"s2", q}};
  CHECK(
      (values_of<double>(unit_gaussian_kl(stages_of_p, stages_of_q)) == std::vector<double>{5, 4}));
}

TEST_CASE("a divergence of bfloat16 is summed in float32") {
  const at::Tensor p = at::ones({1, 3000}, at::kBFloat16);
  const at::Tensor sum = unit_gaussian_kl(p, at::zeros_like(p));
  CHECK((sum.scalar_type() == at::kFloat));
  CHECK(sum.item<double>() == 1500);
}

TEST_CASE("gradients of the losses are those of finite differences") {
  seed_generators(1, c10::kCPU);
  const at::Tensor a = at::randn({2, 3, 4, 5}, at::kDouble);
  const at::Tensor b = at::randn({2, 3, 4, 5}, at::kDouble);
  CHECK(gradient_error([&](const at::Tensor& x) { return l1(x, b); }, a) < 1e-7);
  CHECK(gradient_error([&](const at::Tensor& x) { return l2(x, b); }, a) < 1e-7);
  CHECK(gradient_error([&](const at::Tensor& x) { return image_gradient(x, b); }, a) < 1e-7);
  CHECK(gradient_error([&](const at::Tensor& x) { return chroma(x, b); }, a) < 1e-7);
  CHECK(gradient_error([&](const at::Tensor& x) { return sobel(x, b); }, a) < 1e-6);
  CHECK(gradient_error([&](const at::Tensor& x) { return laplacian(x, b); }, a) < 1e-7);
  CHECK(gradient_error([&](const at::Tensor& x) { return unit_gaussian_kl(x, b); }, a) < 1e-7);
  CHECK(gradient_error([&](const at::Tensor& x) { return unit_gaussian_kl(b, x); }, a) < 1e-7);
}

TEST_CASE("tensors of two shapes are refused instead of repeated") {
  const at::Tensor a = at::ones({2, 3, 4, 4});
  CHECK(message_of([&] { l1(a, a[0]); }) ==
        "l1: expected two tensors of one shape, found float32 [2, 3, 4, 4] and float32 [3, 4, 4]");
  CHECK(message_of([&] { l2(a, {}); }).ends_with("and an undefined tensor"));
  CHECK(message_of([&] { l2(at::ones({2}), at::ones({2})); }) ==
        "l2: expected 2 dimensions or more, the first the examples, found float32 [2]");
  CHECK(message_of([&] { image_gradient(a.slice(3, 0, 1), a.slice(3, 0, 1)); }) ==
        "image_gradient: expected images of 2 pixels a side or more, found float32 [2, 3, 4, 1]");
  CHECK(message_of([&] { chroma(a.slice(1, 0, 1), a.slice(1, 0, 1)); }) ==
        "chroma: expected images of 2 channels or more, found float32 [2, 1, 4, 4]");
  CHECK(message_of([&] {
          unit_gaussian_kl({{"s2", a}}, {{"s1", a}});
        }) == "no key \"s2\"; there are: s1");
  CHECK(message_of([&] {
          unit_gaussian_kl({{"s2", a}}, {});
        }) == "unit_gaussian_kl: expected means of the same stages, found s2 and none");
}

}  // namespace image_losses_test
}  // namespace stepop::losses
