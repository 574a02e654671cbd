#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace stepop::diffusion {

/// What a network predicts of x at timestep t: the noise in it, x at t - 1, or x without noise.
enum class MeanType { kEpsilon, kPreviousX, kStartX };

/// The variances of the steps back: those of the posterior, the betas, what the network gives in
/// further channels as logarithms, or as a position between those two (-1 to 1).
enum class VarianceType { kFixedSmall, kFixedLarge, kLearned, kLearnedRange };

/// The squared error of the prediction, with a term for learned variances, which is scaled up to
/// that of all timesteps in the second; or the variational bound alone, that of a step or of all.
enum class LossType { kMse, kRescaledMse, kKl, kRescaledKl };

struct DiffusionOptions {
  std::vector<double> betas;        ///< Of all timesteps, each in (0, 1).
  std::vector<int64_t> taken = {};  ///< Which of them are taken, ascending; empty: all.
  MeanType mean_type = MeanType::kEpsilon;
  VarianceType variance_type = VarianceType::kFixedSmall;
  LossType loss_type = LossType::kMse;
  bool rescale_timesteps = false;  ///< The network gets floats from 0 to 1000.
};

/// What follows from the betas, computed in float64; each is [T].
struct DiffusionTables {
  explicit DiffusionTables(const std::vector<double>& betas);
  void to(const at::Device& device);

  at::Tensor betas;
  at::Tensor signal;         ///< The cumulative product of 1 - beta.
  at::Tensor signal_before;  ///< The same at the timestep before; 1 at the first.
  at::Tensor sqrt_signal;
  at::Tensor sqrt_noise;       ///< sqrt(1 - signal)
  at::Tensor sqrt_recip;       ///< sqrt(1 / signal)
  at::Tensor sqrt_recip_less;  ///< sqrt(1 / signal - 1)
  at::Tensor posterior_variance;
  at::Tensor posterior_log_variance;  ///< The first one, of 0, is that of the second timestep.
  at::Tensor posterior_of_start;      ///< The posterior's mean is this times x at the start
  at::Tensor posterior_of_now;        ///< and this times x now.
  at::Tensor log_betas;
  at::Tensor large_log_variance;  ///< That of the betas, but for the first.
};

/// Gaussian diffusion (Ho et al., 2020) in the variants of guided-diffusion (Nichol and Dhariwal,
/// 2021). `x` are batches [B, C, ...], images mostly in [-1, 1]; `t` are timesteps [B], int64,
/// counted among those that are taken. Everything can be differentiated but for `t`.
class GaussianDiffusion {
 public:
  /// The network: x at t and the timesteps, of all that the betas have, to a prediction
  /// [B, C, ...], or [B, 2 C, ...] with learned variances.
  using Model = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& timesteps)>;

  /// A normal distribution of each element.
  struct Normal {
    at::Tensor mean;
    at::Tensor log_variance;
  };

  /// What a network's output says of x at t - 1, and of x at the start.
  struct Prediction : Normal {
    at::Tensor start;
  };

  struct Losses {
    at::Tensor loss;   ///< [B]; the sum of the others, or the variational bound in bits.
    at::Tensor mse;    ///< [B]; undefined for the losses `kl`.
    at::Tensor vb;     ///< [B], in bits; undefined without learned variances, and for `kl`.
    at::Tensor start;  ///< x at the start, as the network predicts it.
  };

  /// Applied to errors [B, C, ...] before their mean is taken.
  using Filter = std::function<at::Tensor(const at::Tensor& errors)>;

  /// Throws Error for fewer than two timesteps.
  explicit GaussianDiffusion(const DiffusionOptions& options, const at::Device& device = at::kCPU);

  int64_t num_timesteps() const { return tables_.betas.size(0); }
  bool learns_variance() const;
  const DiffusionTables& tables() const { return tables_; }

  /// x at t: q(x_t | x_0).
  at::Tensor add_noise(const at::Tensor& start, const at::Tensor& t, const at::Tensor& noise) const;

  /// q(x_{t-1} | x_t, x_0).
  Normal posterior(const at::Tensor& start, const at::Tensor& x, const at::Tensor& t) const;

  at::Tensor start_of_noise(const at::Tensor& x, const at::Tensor& t,
                            const at::Tensor& noise) const;
  at::Tensor noise_of_start(const at::Tensor& x, const at::Tensor& t,
                            const at::Tensor& start) const;

  /// What the network gives at `t`. Throws Error when its shape is not the one that is expected.
  at::Tensor call(const Model& model, const at::Tensor& x, const at::Tensor& t) const;

  /// p(x_{t-1} | x_t) by the network's output; `clips`: the start is clipped to [-1, 1].
  Prediction predict(const at::Tensor& output, const at::Tensor& x, const at::Tensor& t,
                     bool clips) const;

  /// The losses of a training step.
  Losses losses(const Model& model, const at::Tensor& start, const at::Tensor& t,
                const at::Tensor& noise, const Filter& filter = {}) const;

  /// The values of a table at `t`, to be multiplied with `like`: [B, 1, ...].
  static at::Tensor values_at(const at::Tensor& table, const at::Tensor& t, const at::Tensor& like);

 private:
  at::Tensor variational_bound(const Prediction& prediction, const at::Tensor& start,
                               const at::Tensor& x, const at::Tensor& t) const;
  at::Tensor start_of_previous(const at::Tensor& x, const at::Tensor& t,
                               const at::Tensor& previous) const;
  at::Tensor start_by(const at::Tensor& mean, const at::Tensor& x, const at::Tensor& t) const;

  DiffusionOptions options_;
  at::Tensor taken_;  ///< [T], the numbers that the network gets.
  DiffusionTables tables_;
};

}  // namespace stepop::diffusion
