#include "iterators/vunet/criterion.h"

#include <ATen/core/grad_mode.h>

#include "iterators/losses/image_losses.h"

namespace stepop::vunet {

Criterion::Criterion(const Config& config, const c10::Device& device)
    : weights_(config,
               {"color_L1", "color_L2", "color_chroma", "color_gradient", "KL", "perceptual"}) {
  if (weights_.has("perceptual")) perceptual_.emplace(config.at("perceptual"), device);
}

Losses Criterion::operator()(const Prediction& prediction, const at::Tensor& target,
                             int64_t step) const {
  const at::Tensor& image = prediction.image;
  Losses losses;
  const auto add = [&](const char* name, const auto& value) {
    if (!weights_.has(name)) return;
    const at::AutoGradMode gradients(at::GradMode::is_enabled() && !weights_.is_only_watched(name));
    losses.instances.set(name, value());
  };
  add("color_L1", [&] { return losses::l1(image, target); });
  add("color_L2", [&] { return losses::l2(image, target); });
  add("color_chroma", [&] { return losses::chroma(image, target); });
  add("color_gradient", [&] { return losses::image_gradient(image, target); });
  add("KL", [&] { return losses::unit_gaussian_kl(prediction.p_means, prediction.q_means); });
  add("perceptual", [&] { return (*perceptual_)(image, target); });
  losses.instances.set("total", weights_.total(losses.instances, step));
  for (const auto& [name, values] : losses.instances) losses.batch.set(name, values.mean());
  return losses;
}

}  // namespace stepop::vunet
