#include "iterators/losses/image_losses.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/square.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop::losses {
namespace {

void check(const char* name, const at::Tensor& a, const at::Tensor& b, int64_t least_dimensions) {
  const bool are_defined = a.defined() && b.defined();
  if (!are_defined || a.sizes() != b.sizes()) {
    throw Error(fmt::format("{}: expected two tensors of one shape, found {} and {}", name,
                            describe_tensor(a), describe_tensor(b)));
  }
  if (a.dim() < least_dimensions) {
    throw Error(fmt::format("{}: expected {} dimensions or more, the first the examples, found {}",
                            name, least_dimensions, describe_tensor(a)));
  }
}

at::Tensor mean_of_each(const at::Tensor& x) { return x.flatten(1).mean(1); }

/// |x[i + 1] - x[i]| along a dimension.
at::Tensor edges(const at::Tensor& x, int64_t dimension) {
  const int64_t length = x.size(dimension) - 1;
  return at::abs(x.narrow(dimension, 1, length) - x.narrow(dimension, 0, length));
}

/// The mean over the channels of [B, C, H, W], filtered by 3 x 3 kernels (row-major):
/// [B, kernels, H, W].
at::Tensor filtered(const at::Tensor& images, std::vector<float> kernels) {
  const auto count = static_cast<int64_t>(kernels.size()) / 9;
  const at::Tensor weight = at::tensor(kernels).view({count, 1, 3, 3}).to(images.options());
  return at::conv2d(images.mean(1, /*keepdim=*/true), weight, {}, /*stride=*/1, /*padding=*/1);
}

at::Tensor sobel_strength(const at::Tensor& images) {
  const at::Tensor gradients =
      filtered(images, {1, 0, -1, 2, 0, -2, 1, 0, -1, /**/ 1, 2, 1, 0, 0, 0, -1, -2, -1});
  return at::sqrt(at::square(gradients).sum(1) + 1e-6);
}

}  // namespace

at::Tensor l1(const at::Tensor& a, const at::Tensor& b) {
  check("l1", a, b, 2);
  return mean_of_each(at::abs(a - b));
}

at::Tensor l2(const at::Tensor& a, const at::Tensor& b) {
  check("l2", a, b, 2);
  return mean_of_each(at::square(a - b));
}

at::Tensor chroma(const at::Tensor& a, const at::Tensor& b) {
  check("chroma", a, b, 4);
  if (a.size(1) < 2) {
    throw Error("chroma: expected images of 2 channels or more, found " + describe_tensor(a));
  }
  const at::Tensor difference = a - b;
  return mean_of_each(at::square(difference - difference.mean(1, /*keepdim=*/true)));
}

at::Tensor image_gradient(const at::Tensor& a, const at::Tensor& b) {
  check("image_gradient", a, b, 4);
  if (a.size(-1) < 2 || a.size(-2) < 2) {
    throw Error("image_gradient: expected images of 2 pixels a side or more, found " +
                describe_tensor(a));
  }
  return l1(edges(a, -1), edges(b, -1)) + l1(edges(a, -2), edges(b, -2));
}

at::Tensor sobel(const at::Tensor& a, const at::Tensor& b) {
  check("sobel", a, b, 4);
  return l1(sobel_strength(a), sobel_strength(b));
}

at::Tensor laplacian(const at::Tensor& a, const at::Tensor& b) {
  check("laplacian", a, b, 4);
  // Filtering is linear, so the difference is filtered once.
  const at::Tensor difference = filtered(a - b, {0, 1, 0, 1, -4, 1, 0, 1, 0});
  return mean_of_each(at::abs(difference));
}

at::Tensor unit_gaussian_kl(const at::Tensor& p_mean, const at::Tensor& q_mean) {
  check("unit_gaussian_kl", p_mean, q_mean, 2);
  // The 8 bits of bfloat16 are too few for a sum over thousands.
  const at::Tensor p =
      c10::isReducedFloatingType(p_mean.scalar_type()) ? p_mean.to(at::kFloat) : p_mean;
  return at::square(p - q_mean).flatten(1).sum(1) * 0.5;
}

at::Tensor unit_gaussian_kl(const OrderedMap<at::Tensor>& p_means,
                            const OrderedMap<at::Tensor>& q_means) {
  if (p_means.empty() || p_means.size() != q_means.size()) {
    throw Error(fmt::format("unit_gaussian_kl: expected means of the same stages, found {} and {}",
                            p_means.key_list(), q_means.key_list()));
  }
  at::Tensor sum;
  for (const auto& [stage, p_mean] : p_means) {
    const at::Tensor kl = unit_gaussian_kl(p_mean, q_means.at(stage));
    sum = sum.defined() ? sum + kl : kl;
  }
  return sum;
}

}  // namespace stepop::losses
