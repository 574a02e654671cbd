#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string_view>

#include "runtime/core/formats/state.h"

namespace stepop::diffusion {

/// Draws the timesteps of a training batch's examples.
class TimestepSampler {
 public:
  struct Drawn {
    at::Tensor timesteps;  ///< [B], int64, on the CPU.
    at::Tensor weights;    ///< Factors of the losses, [B], float32, which make their mean equal the
                           ///< mean for uniform timesteps; undefined: all are 1.
  };

  virtual ~TimestepSampler() = default;

  /// Random numbers come from the default generator of the CPU.
  virtual Drawn draw(int64_t count) const = 0;
  /// Receives the losses [B] of drawn timesteps, without weights.
  virtual void update(const at::Tensor& /*timesteps*/, const at::Tensor& /*losses*/) {}

  /// The state that a checkpoint stores; empty when there is none.
  virtual State state() const { return {}; }
  virtual void load_state(const State& /*state*/) {}
};

/// Draws all timesteps with equal probability.
class UniformSampler : public TimestepSampler {
 public:
  explicit UniformSampler(int64_t timesteps) : timesteps_(timesteps) {}
  Drawn draw(int64_t count) const override;

 private:
  int64_t timesteps_;
};

/// Draws timesteps with large losses more often: in proportion to the root mean square of each
/// timestep's last ten losses, once every timestep has ten losses (Nichol and Dhariwal, 2021).
class LossSecondMomentSampler : public TimestepSampler {
 public:
  explicit LossSecondMomentSampler(int64_t timesteps);
  Drawn draw(int64_t count) const override;
  void update(const at::Tensor& timesteps, const at::Tensor& losses) override;
  State state() const override;
  /// Throws Error for a state with another number of timesteps.
  void load_state(const State& state) override;

  /// The probability of each timestep, float64 [T].
  at::Tensor probabilities() const;
  bool is_warmed_up() const;

  static constexpr int64_t kHistory = 10;
  static constexpr double kUniform = 0.001;  ///< The share of the uniform distribution.

 private:
  at::Tensor losses_;  ///< float64 [T, kHistory], the oldest first.
  at::Tensor counts_;  ///< int64 [T]
};

/// `uniform` or `loss-second-moment`; null for another name.
std::unique_ptr<TimestepSampler> make_timestep_sampler(std::string_view name, int64_t timesteps);

/// The timesteps, int64 [count], of examples from position `first` on, where `range` examples are
/// spread evenly over all timesteps: always the same, so that losses can be compared.
at::Tensor spread_timesteps(int64_t first, int64_t count, int64_t range, int64_t timesteps);

}  // namespace stepop::diffusion
