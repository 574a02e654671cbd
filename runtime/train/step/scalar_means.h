#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/formats/state.h"
#include "runtime/core/log/logs.h"

namespace stepop {

/// The means of the scalars that train ops return, from one log to the next. Sums are float64,
/// whatever the type of the scalars, and stay on the device; nothing is read back before a log is
/// due. The sums are a part of a run's state, so the first log after a restart also covers the
/// steps before it.
///
/// A scalar with a weight is a mean over all that it counted. Another scalar is a mean over the
/// steps, in each of which every example counts the same.
class ScalarMeans {
 public:
  /// What a batch is of its step, by the number of examples.
  struct Share {
    double own = 1;  ///< This process's part of the batch.
    double all = 1;  ///< The batch of all processes.
  };

  /// Adds the scalars that the op `op`, `train/train_op`, returned for a batch.
  void add(const std::string& op, const Scalars& scalars, Share share);
  void add(const std::string& op, const Scalars& scalars) { add(op, scalars, Share()); }

  /// Returns the means by op and key, in the order of their first appearance; then starts again. Of
  /// several processes: the sum of a mean without a weight is the mean.
  OrderedMap<Logs> take();

  /// Adds the sums of another process, which its `save` returned.
  void add_other(const State& state);

  /// Sets the totals here to 0, because another process has them.
  void clear_totals();

  State save() const;
  void load(const State& state);

 private:
  struct Sum {
    at::Tensor total;   ///< float64 [].
    double count = 0;   ///< Steps of all processes; parts of steps come one by one.
    at::Tensor weight;  ///< float64 []; undefined for a scalar without a weight.

    void add(const at::Tensor& number, const at::Tensor& of_weight);
  };

  OrderedMap<Sum> sums_;  ///< By full name, `train/train_op/loss`.
};

}  // namespace stepop
