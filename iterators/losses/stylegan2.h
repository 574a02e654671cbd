#pragma once

#include <ATen/core/Tensor.h>

namespace stepop::losses {

/// The losses of StyleGAN 2 (Karras et al., 2020) as in lucidrains' stylegan2-pytorch. With
/// `is_logistic` they are the paper's losses: the discriminator gives real images high logits.
/// Without, they are hinge losses: the discriminator gives real images low logits.
///
/// | | generator | discriminator |
/// | logistic | mean softplus(-f) | mean softplus(-r) + mean softplus(f) |
/// | hinge | mean f | mean (max(0, 1 + r) + max(0, 1 - f)) |
///
/// f are the logits of generated images, r of real images; []. The hinge loss of a discriminator
/// needs equal numbers of both.
at::Tensor stylegan2_generator_loss(const at::Tensor& fake, bool is_logistic);
at::Tensor stylegan2_discriminator_loss(const at::Tensor& real, const at::Tensor& fake,
                                        bool is_logistic);

/// The path lengths of images [B, C, H, W] by their styles [B, layers, D]: the norm of the gradient
/// of randomly weighted pixels by the styles, root mean square over the layers, [B]. With a graph.
/// Throws Error for other shapes, when gradients are disabled, and when the images do not depend on
/// the styles.
at::Tensor path_lengths(const at::Tensor& styles, const at::Tensor& images);

}  // namespace stepop::losses
