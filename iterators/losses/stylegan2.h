#pragma once

#include <ATen/core/Tensor.h>

namespace stepop::losses {

/// The losses of StyleGAN 2 (Karras et al., 2020) as lucidrains' stylegan2-pytorch has them. With
/// `is_logistic` they are those of the paper: the discriminator gives real images high logits.
/// Without, they are hinge losses in which it gives them low ones.
///
/// | | generator | discriminator |
/// | logistic | mean softplus(-f) | mean softplus(-r) + mean softplus(f) |
/// | hinge | mean f | mean (max(0, 1 + r) + max(0, 1 - f)) |
///
/// f are the logits of made images, r those of real ones; []. The hinge loss of a discriminator
/// needs as many of both.
at::Tensor stylegan2_generator_loss(const at::Tensor& fake, bool is_logistic);
at::Tensor stylegan2_discriminator_loss(const at::Tensor& real, const at::Tensor& fake,
                                        bool is_logistic);

/// How far images [B, C, H, W] move when their styles [B, layers, D] do: the norm of the gradient
/// of random pixels by the styles, the mean square over the layers, [B]. With a graph. Throws Error
/// for other shapes, where gradients are disabled, and where the images do not depend on the
/// styles.
at::Tensor path_lengths(const at::Tensor& styles, const at::Tensor& images);

}  // namespace stepop::losses
