#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace stepop::diffusion {

/// The network's prediction from x at timestep t: the noise in x, x at t - 1, or x without noise.
enum class MeanType { kEpsilon, kPreviousX, kStartX };

/// The variances of the steps back: the posterior's, the betas, or the network's further channels,
/// as logarithms, or as positions between the posterior's and the betas (-1 to 1).
enum class VarianceType { kFixedSmall, kFixedLarge, kLearned, kLearnedRange };

/// The squared error, plus a term for learned variances, which `kRescaledMse` multiplies by
/// timesteps / 1000; or the variational bound alone, for one step or for all steps.
enum class LossType { kMse, kRescaledMse, kKl, kRescaledKl };

struct DiffusionOptions {
  std::vector<double> betas;        ///< One for each timestep, in (0, 1).
  std::vector<int64_t> taken = {};  ///< The timesteps that are taken, ascending; empty: all.
  MeanType mean_type = MeanType::kEpsilon;
  VarianceType variance_type = VarianceType::kFixedSmall;
  LossType loss_type = LossType::kMse;
  bool rescale_timesteps = false;  ///< The network gets timesteps as floats from 0 to 1000.
};

/// Tables that are computed from the betas in float64; each is [T].
struct DiffusionTables {
  explicit DiffusionTables(const std::vector<double>& betas);
  void to(const at::Device& device);

  at::Tensor betas;
  at::Tensor signal;         ///< The cumulative product of 1 - beta.
  at::Tensor signal_before;  ///< `signal` at the timestep before; 1 at the first.
  at::Tensor sqrt_signal;
  at::Tensor sqrt_noise;       ///< sqrt(1 - signal)
  at::Tensor sqrt_recip;       ///< sqrt(1 / signal)
  at::Tensor sqrt_recip_less;  ///< sqrt(1 / signal - 1)
  at::Tensor posterior_variance;
  at::Tensor posterior_log_variance;  ///< The first entry, log 0, is the second's instead.
  at::Tensor posterior_of_start;      ///< The factor of x at the start in the posterior's mean.
  at::Tensor posterior_of_now;        ///< The factor of x at t in the posterior's mean.
  at::Tensor log_betas;
  at::Tensor large_log_variance;  ///< `log_betas`; the first is the posterior's instead.
};

/// Gaussian diffusion (Ho et al., 2020) in the variants of guided-diffusion (Nichol and Dhariwal,
/// 2021). `x` are batches [B, C, ...], images mostly in [-1, 1]; `t` are timesteps, int64, which
/// index the taken timesteps: [B], or [B, 1, ...] for each element of x. All inputs except `t` can
/// be differentiated.
class GaussianDiffusion {
 public:
  /// The network: maps x at t and the timesteps, numbered among all betas, to a prediction
  /// [B, C, ...], or [B, 2 C, ...] with learned variances.
  using Model = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& timesteps)>;

  /// A normal distribution for each element.
  struct Normal {
    at::Tensor mean;
    at::Tensor log_variance;
  };

  /// The predicted distribution of x at t - 1, and the predicted x at the start.
  struct Prediction : Normal {
    at::Tensor start;
  };

  struct Losses {
    at::Tensor loss;   ///< [B]; the sum of `mse` and `vb`, or the variational bound in bits.
    at::Tensor mse;    ///< [B]; undefined for the losses `kl`.
    at::Tensor vb;     ///< [B], in bits; undefined without learned variances, and for `kl`.
    at::Tensor start;  ///< x at the start, as the network predicts it.
  };

  /// A function that is applied to errors [B, C, ...] before their mean is taken.
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

  /// The network's output at `t`. Throws Error when its shape is not the expected shape.
  at::Tensor call(const Model& model, const at::Tensor& x, const at::Tensor& t) const;

  /// p(x_{t-1} | x_t) from the network's output; `clips`: the start is clipped to [-1, 1].
  Prediction predict(const at::Tensor& output, const at::Tensor& x, const at::Tensor& t,
                     bool clips) const;

  /// The losses of a training step.
  Losses losses(const Model& model, const at::Tensor& start, const at::Tensor& t,
                const at::Tensor& noise, const Filter& filter = {}) const;

  /// The values of a table at `t`, to be multiplied with `like`.
  static at::Tensor values_at(const at::Tensor& table, const at::Tensor& t, const at::Tensor& like);

 private:
  at::Tensor variational_bound(const Prediction& prediction, const at::Tensor& start,
                               const at::Tensor& x, const at::Tensor& t) const;
  at::Tensor start_of_previous(const at::Tensor& x, const at::Tensor& t,
                               const at::Tensor& previous) const;
  at::Tensor start_by(const at::Tensor& mean, const at::Tensor& x, const at::Tensor& t) const;

  DiffusionOptions options_;
  at::Tensor taken_;  ///< [T], the timesteps that the network gets.
  DiffusionTables tables_;
};

}  // namespace stepop::diffusion
