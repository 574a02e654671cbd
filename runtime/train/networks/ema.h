#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/config/config.h"
#include "runtime/train/networks/averages.h"
#include "runtime/train/optim/schedule.h"

namespace stepop {

class Optimizer;

/// Exponential moving averages of the parameters of networks, as in torch.optim.swa_utils:
///
///   average += (1 - decay) * (parameter - average)
///
/// after each training step. Buffers are not averaged: averages are used with the network's own
/// buffers.
///
/// Config: `ema: {decay: 0.999, warmup: false, networks: [model], on_cpu: false}`. `decay` may be a
/// schedule. With `warmup` the decay is at most (1 + n) / (10 + n) after n complete steps, as in
/// TensorFlow, so that the first weights are forgotten soon. By default all networks that an update
/// trains are averaged.
///
/// With `on_cpu` the averages are in the host's memory. As the weights have to be copied there,
/// they are averaged in every tenth step, by the product of ten decays; also where the averages
/// began within these ten steps.
///
/// An optimizer may have averages of its own. They then stand in the place of moving ones.
class Ema : public Averages {
 public:
  /// `config` is the part `ema`. With `must_be_restored`, a checkpoint without averages is an
  /// error. Throws UsageError for a decay outside of [0, 1).
  Ema(const Config& config, bool must_be_restored);

  /// The averages of `optimizers`, which must outlive this.
  Ema(std::vector<const Optimizer*> optimizers, bool must_be_restored)
      : Averages("ema"), optimizers_(std::move(optimizers)), must_be_restored_(must_be_restored) {}

  /// Starts with the current weights, unless averages were restored.
  void start() { start_averages(); }

  /// Called after the step that follows `global_step` complete steps, and only after `start`.
  void update(int64_t global_step);

  /// Of the first `steps` steps those that the averages have taken in at the end.
  int64_t averaged_steps(int64_t steps) const { return steps / every_ * every_; }

  /// Whether updates in the first `steps` steps give averages that are neither unchanged nor a copy
  /// of the weights.
  bool averages_within(int64_t steps) const;

  /// Restores the averages. After an empty state, from a checkpoint that was saved without `ema`,
  /// `start` begins with the current weights. Throws Error, and changes nothing, for a state that
  /// does not fit.
  void load_state(const std::string& name, const State& state);

 private:
  double decay_at(int64_t global_step) const;
  /// The product of the decays of the steps that one update is for, of which this is the last.
  double decay_until(int64_t global_step) const;

  void take_averages();

  std::vector<const Optimizer*> optimizers_;  ///< Empty for moving averages.
  std::optional<Scheduled> decay_;            ///< Of moving averages.
  bool warmup_ = false;
  int64_t every_ = 1;  ///< Of moving averages, in steps.
  bool must_be_restored_;
};

}  // namespace stepop
