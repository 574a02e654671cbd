#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace stepop::losses {

/// The loss from a discriminator's logits:
///
/// - gan: generator bce(f, 1); discriminator bce(r, 1) + bce(f, 0)
/// - pixgan: the same, for logits of each pixel
/// - ragan: generator (bce(r - mean f, 0) + bce(f - mean r, 1)) / 2; discriminator
///   bce(r - mean f, 1) + bce(f - mean r, 0)
/// - max_spread: discriminator 2 (2 sigmoid(1 / |mean r - mean f|) - 1); no generator's loss
/// - lsgan: generator mean (f - 1)^2; discriminator mean (r - 1)^2 + mean f^2
/// - hinge: generator -mean f; discriminator mean max(0, 1 - r) + mean max(0, 1 + f)
///
/// bce is binary cross entropy on logits; r are logits of real examples, f of generated examples.
enum class GanType { kGan, kPixGan, kRaGan, kMaxSpread, kLsGan, kHinge };

/// The names above, in their order.
const std::vector<std::string>& gan_type_names();
/// `name` is one of them.
GanType gan_type_of(const std::string& name);

/// Whether the generator's loss also uses real examples.
inline bool generator_needs_real(GanType type) { return type == GanType::kRaGan; }

/// The loss of a generator, []. `real` may be undefined where it is not needed. Throws Error for
/// kMaxSpread, which has no generator loss.
at::Tensor generator_loss(GanType type, const at::Tensor& real, const at::Tensor& fake);

/// The loss of a discriminator, [].
at::Tensor discriminator_loss(GanType type, const at::Tensor& real, const at::Tensor& fake);

/// The gradient of the sum of `logits` by `images`, with a graph, for gradient penalties. Throws
/// Error where gradients are disabled.
at::Tensor input_gradient(const at::Tensor& logits, const at::Tensor& images);

/// mean (|g| - 1)^2 over the examples of a gradient [B, ...] (WGAN-GP, Gulrajani et al., 2017): [].
at::Tensor unit_norm_penalty(const at::Tensor& gradient);

/// mean |g|^2 / 2 over the examples (R1, Mescheder et al., 2018): [].
at::Tensor r1_penalty(const at::Tensor& gradient);

}  // namespace stepop::losses
