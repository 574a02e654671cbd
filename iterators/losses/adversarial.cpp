#include "iterators/losses/adversarial.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/square.h>
#include <torch/csrc/autograd/autograd.h>

#include "runtime/core/base/error.h"

namespace stepop::losses {
namespace {

at::Tensor bce(const at::Tensor& logits, double target) {
  return at::binary_cross_entropy_with_logits(logits, at::full_like(logits, target));
}

at::Tensor float_of(const at::Tensor& logits) { return logits.to(at::kFloat); }

}  // namespace

const std::vector<std::string>& gan_type_names() {
  static const std::vector<std::string> names = {"gan",        "pixgan", "ragan",
                                                 "max_spread", "lsgan",  "hinge"};
  return names;
}

GanType gan_type_of(const std::string& name) {
  const auto& names = gan_type_names();
  return static_cast<GanType>(std::ranges::find(names, name) - names.begin());
}

at::Tensor generator_loss(GanType type, const at::Tensor& real, const at::Tensor& fake) {
  const at::Tensor f = float_of(fake);
  switch (type) {
    case GanType::kGan:
    case GanType::kPixGan:
      return bce(f, 1);
    case GanType::kRaGan: {
      const at::Tensor r = float_of(real);
      return (bce(r - f.mean(), 0) + bce(f - r.mean(), 1)) / 2;
    }
    case GanType::kLsGan:
      return at::square(f - 1).mean();
    case GanType::kHinge:
      return f.mean().neg();
    case GanType::kMaxSpread:
      break;
  }
  throw Error("max_spread is a loss of discriminators alone");
}

at::Tensor discriminator_loss(GanType type, const at::Tensor& real, const at::Tensor& fake) {
  const at::Tensor r = float_of(real);
  const at::Tensor f = float_of(fake);
  switch (type) {
    case GanType::kGan:
    case GanType::kPixGan:
      return bce(r, 1) + bce(f, 0);
    case GanType::kRaGan:
      return bce(r - f.mean(), 1) + bce(f - r.mean(), 0);
    case GanType::kMaxSpread:
      return (at::sigmoid((r.mean() - f.mean()).abs().reciprocal()) * 2 - 1) * 2;
    case GanType::kLsGan:
      return at::square(r - 1).mean() + at::square(f).mean();
    case GanType::kHinge:
      return at::relu(1 - r).mean() + at::relu(1 + f).mean();
  }
  throw Error("an unknown type of GAN");
}

at::Tensor input_gradient(const at::Tensor& logits, const at::Tensor& images) {
  if (!at::GradMode::is_enabled()) {
    throw Error("a gradient penalty belongs in a training step: gradients are disabled here");
  }
  return torch::autograd::grad({logits}, {images}, {at::ones_like(logits)},
                               /*retain_graph=*/true, /*create_graph=*/true)
      .front();
}

at::Tensor unit_norm_penalty(const at::Tensor& gradient) {
  return at::square(gradient.flatten(1).norm(2, 1) - 1).mean();
}

at::Tensor r1_penalty(const at::Tensor& gradient) {
  return at::square(gradient.flatten(1)).sum(1).mean() / 2;
}

}  // namespace stepop::losses
