#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "runtime/core/formats/state.h"
#include "runtime/core/log/weighted_mean.h"
#include "runtime/train/optim/step_clock.h"

namespace stepop {

class World;

/// The weights of the means of an update, over its batches and processes.
///
/// Until all weights are known, a mean is weighted by its share of the step's examples, times its
/// weight of an example relative to a fixed one, `unit`. `correct` divides by the sum of these
/// factors. Where each example counts the same, they are the shares, bit for bit, and there is
/// nothing to correct.
class MeanWeights {
 public:
  /// The gradient with which the backward of `mean`, of this share of a batch, starts, without a
  /// loss scale. `world` is null for one process; the first call among several processes asks all.
  at::Tensor seed(const WeightedMean& mean, double share, const StepClock& clock, World* world);

  /// Whether a mean of this update has a weight.
  bool are_given() const { return are_given_; }

  /// The sums of shares and of factors, to be summed over the processes: float64 [2].
  at::Tensor sums() const;
  /// Takes the sums of all processes.
  void set_sums(const at::Tensor& sums) { sums_of_all_ = sums; }

  /// Makes the gradients, which are sums over batches and processes, those of the mean over all;
  /// then begins anew.
  void correct(const std::vector<at::Tensor>& gradients);

  /// Forgets the weights of an update that is not made.
  void clear();

  /// Adds what a checkpoint needs between `backward` and `apply`, and for the same bits later.
  void save(State& state) const;
  /// Moves such entries out of `state`.
  static State take(State& state);
  void load(const State& state);

 private:
  void find_unit(const WeightedMean& mean, double examples, World* world);

  std::optional<double> unit_;  ///< The weight of an example of the first mean.
  bool are_given_ = false;
  double shares_ = 0;        ///< The sum of the shares of examples.
  double factors_ = 0;       ///< The sum of the known factors.
  at::Tensor late_factors_;  ///< The sum of the others: float64 [] on their device, or undefined.
  at::Tensor sums_of_all_;   ///< Of all processes, as `sums`; undefined for one.
};

}  // namespace stepop
