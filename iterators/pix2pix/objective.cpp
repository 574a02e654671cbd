// The losses of pix2pix, which a config names by `loss_spec`.
#include <ATen/core/Reduction.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/full_like.h>

#include <memory>
#include <string>

#include "iterators/losses/image_losses.h"
#include "iterators/losses/loss_manager.h"
#include "iterators/losses/perceptual.h"

namespace stepop::pix2pix {
namespace {

using losses::LossFunction;
using losses::LossSpecs;
using losses::of_two;

/// Binary cross entropy of logits [B, 1, h, w], per patch.
LossFunction should_be(double target) {
  return [target](const std::vector<at::Tensor>& inputs) {
    const at::Tensor& logits = inputs.at(0);
    return at::binary_cross_entropy_with_logits(logits, at::full_like(logits, target), {}, {},
                                                at::Reduction::None);
  };
}

LossFunction vgg(const Context& context) {
  const char* path = "losses/G_VGG";
  if (!context.config.has(path)) {
    throw context.config.error(path,
                               "this loss_spec needs {weight: 10, vgg19: "
                               "vgg19.safetensors} here; this makes the file: " +
                                   std::string(losses::Vgg19::export_line()));
  }
  const auto loss = std::make_shared<losses::VggLoss>(context.config.at(path), context.device);
  return
      [loss](const std::vector<at::Tensor>& images) { return (*loss)(images.at(0), images.at(1)); };
}

/// The discriminator's losses have the weight 0.5, so that both halves of a batch count as one.
LossSpecs basic(const Context& context) {
  const double real = 1 - context.config.get("label_smoothing", 0.0);
  return {{"D_real", {should_be(real), {"D"}, 0.5}},
          {"D_fake", {should_be(0), {"D"}, 0.5}},
          {"G_GAN", {should_be(1), {"G"}, 1}},
          {"G_L1", {of_two(losses::l1), {"G"}, 100}}};
}

LossSpecs extended(const Context& context) {
  LossSpecs specs = basic(context);
  specs.set("G_L2", {of_two(losses::l2), {"G"}, 0});
  specs.set("G_SOBEL", {of_two(losses::sobel), {"G"}, 3});
  specs.set("G_LAP", {of_two(losses::laplacian), {"G"}, 1});
  return specs;
}

LossSpecs with_vgg(LossSpecs specs, const Context& context) {
  specs.set("G_VGG", {vgg(context), {"G"}, 10});
  return specs;
}

LossSpecs basic_vgg(const Context& context) { return with_vgg(basic(context), context); }
LossSpecs extended_vgg(const Context& context) { return with_vgg(extended(context), context); }

STEPOP_REGISTER_LOSS_SPEC("basic", basic,
                          {"Pix2Pix: D_real and D_fake 0.5 each, G_GAN 1, G_L1 100.", {}});
STEPOP_REGISTER_LOSS_SPEC("basic+vgg", basic_vgg, {"basic and G_VGG 10.", {}});
STEPOP_REGISTER_LOSS_SPEC("extended", extended,
                          {"basic, G_L2 0, which is watched, G_SOBEL 3 and G_LAP 1.", {}});
STEPOP_REGISTER_LOSS_SPEC("extended+vgg", extended_vgg, {"extended and G_VGG 10.", {}});

}  // namespace
}  // namespace stepop::pix2pix
