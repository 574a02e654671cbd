#include "iterators/losses/stylegan2.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/square.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop::losses {

at::Tensor stylegan2_generator_loss(const at::Tensor& fake, bool is_logistic) {
  const at::Tensor f = fake.to(at::kFloat);
  return is_logistic ? at::softplus(f.neg()).mean() : f.mean();
}

at::Tensor stylegan2_discriminator_loss(const at::Tensor& real, const at::Tensor& fake,
                                        bool is_logistic) {
  const at::Tensor r = real.to(at::kFloat);
  const at::Tensor f = fake.to(at::kFloat);
  if (is_logistic) return at::softplus(r.neg()).mean() + at::softplus(f).mean();
  return (at::relu(1 + r) + at::relu(1 - f)).mean();
}

at::Tensor path_lengths(const at::Tensor& styles, const at::Tensor& images) {
  if (styles.dim() != 3 || images.dim() != 4 || styles.size(0) != images.size(0)) {
    throw Error(
        fmt::format("path lengths: expected styles [B, layers, D] and images [B, C, H, W], "
                    "found {} and {}",
                    describe_tensor(styles), describe_tensor(images)));
  }
  if (!at::GradMode::is_enabled() || !styles.requires_grad() || !images.requires_grad()) {
    throw Error(
        "path lengths: the styles and the images have no graph: both have to be made, with "
        "gradients, in the step that trains by them");
  }
  const auto pixels = static_cast<double>(images.size(2) * images.size(3));
  const at::Tensor noise = at::randn_like(images) / std::sqrt(pixels);
  const at::Tensor moved = (images * noise).sum();
  const at::Tensor gradient =
      torch::autograd::grad({moved}, {styles}, {at::ones_like(moved)}, /*retain_graph=*/true,
                            /*create_graph=*/true, /*allow_unused=*/true)
          .front();
  if (!gradient.defined()) {
    throw Error("path lengths: the images do not depend on the styles");
  }
  return at::square(gradient).sum(2).mean(1).sqrt();
}

}  // namespace stepop::losses
