#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string_view>

#include "runtime/core/formats/state.h"

namespace stepop::diffusion {

/// Which timesteps the examples of a batch get in training.
class TimestepSampler {
 public:
  struct Drawn {
    at::Tensor timesteps;  ///< [B], int64, on the CPU.
    at::Tensor weights;    ///< Of the losses, [B], float32, so that their mean is that of uniform
                           ///< timesteps; undefined: all are 1.
  };

  virtual ~TimestepSampler() = default;

  /// Random numbers come from the default generator of the CPU.
  virtual Drawn draw(int64_t count) const = 0;
  /// What the losses [B] of drawn timesteps were, without weights.
  virtual void update(const at::Tensor& /*timesteps*/, const at::Tensor& /*losses*/) {}

  /// What must survive a restart; empty when there is nothing.
  virtual State state() const { return {}; }
  virtual void load_state(const State& /*state*/) {}
};

/// All timesteps alike.
class UniformSampler : public TimestepSampler {
 public:
  explicit UniformSampler(int64_t timesteps) : timesteps_(timesteps) {}
  Drawn draw(int64_t count) const override;

 private:
  int64_t timesteps_;
};

/// More often those with large losses: in proportion to the root of the mean of the last ten
/// squared losses of each timestep, once every timestep has so many (Nichol and Dhariwal, 2021).
class LossSecondMomentSampler : public TimestepSampler {
 public:
  explicit LossSecondMomentSampler(int64_t timesteps);
  Drawn draw(int64_t count) const override;
  void update(const at::Tensor& timesteps, const at::Tensor& losses) override;
  State state() const override;
  /// Throws Error for a state of another number of timesteps.
  void load_state(const State& state) override;

  /// The probabilities, float64 [T].
  at::Tensor probabilities() const;
  bool is_warmed_up() const;

  static constexpr int64_t kHistory = 10;
  static constexpr double kUniform = 0.001;  ///< The share of all timesteps alike.

 private:
  at::Tensor losses_;  ///< float64 [T, kHistory], the oldest first.
  at::Tensor counts_;  ///< int64 [T]
};

/// `uniform` or `loss-second-moment`; null for another name.
std::unique_ptr<TimestepSampler> make_timestep_sampler(std::string_view name, int64_t timesteps);

/// The timesteps of `count` examples from position `first` on, where `range` examples are spread
/// evenly over all of them: always the same ones, to compare losses by. [count], int64
at::Tensor spread_timesteps(int64_t first, int64_t count, int64_t range, int64_t timesteps);

}  // namespace stepop::diffusion
