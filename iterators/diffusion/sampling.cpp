#include "iterators/diffusion/sampling.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn_like.h>

namespace stepop::diffusion {
namespace {

at::Tensor ddpm_step(const GaussianDiffusion::Prediction& prediction, const at::Tensor& x,
                     bool is_last) {
  if (is_last) return prediction.mean;
  return prediction.mean + (0.5 * prediction.log_variance).exp() * at::randn_like(x);
}

/// Equation 12 of Song et al., 2020.
at::Tensor ddim_step(const GaussianDiffusion& diffusion,
                     const GaussianDiffusion::Prediction& prediction, const at::Tensor& x,
                     const at::Tensor& t, bool is_last, double eta) {
  // The noise is recomputed: the start may be clipped, or not come from a prediction of the noise.
  const at::Tensor noise = diffusion.noise_of_start(x, t, prediction.start);
  const at::Tensor signal = GaussianDiffusion::values_at(diffusion.tables().signal, t, x);
  const at::Tensor before = GaussianDiffusion::values_at(diffusion.tables().signal_before, t, x);
  if (eta == 0) return prediction.start * before.sqrt() + (1 - before).sqrt() * noise;
  const at::Tensor sigma =
      eta * ((1 - before) / (1 - signal)).sqrt() * (1 - signal / before).sqrt();
  const at::Tensor mean =
      prediction.start * before.sqrt() + (1 - before - sigma.square()).sqrt() * noise;
  return is_last ? mean : mean + sigma * at::randn_like(x);
}

}  // namespace

at::Tensor sample(const GaussianDiffusion& diffusion, const GaussianDiffusion::Model& model,
                  const at::Tensor& noise, const SamplingOptions& options) {
  const at::NoGradGuard no_grad;
  at::Tensor x = noise;
  for (int64_t i = diffusion.num_timesteps() - 1; i >= 0; --i) {
    const at::Tensor t = at::full({x.size(0)}, i, at::TensorOptions(at::kLong).device(x.device()));
    const auto prediction = diffusion.predict(diffusion.call(model, x, t), x, t, options.clips);
    x = options.use_ddim ? ddim_step(diffusion, prediction, x, t, i == 0, options.eta)
                         : ddpm_step(prediction, x, i == 0);
  }
  return x;
}

}  // namespace stepop::diffusion
