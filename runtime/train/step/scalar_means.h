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
class ScalarMeans {
 public:
  /// Adds the scalars that the op `op`, `train/train_op`, returned. `share`: this process's part of
  /// the batch; the sum of all processes' means is then the mean.
  void add(const std::string& op, const Scalars& scalars, double share = 1);

  /// Returns the means by op and key, in the order of their first appearance; then starts again.
  OrderedMap<Logs> take();

  /// Adds the sums of another process, which its `save` returned.
  void add_other(const State& state);

  /// Sets the totals here to 0, because another process has them.
  void clear_totals();

  State save() const;
  void load(const State& state);

 private:
  struct Sum {
    at::Tensor total;  ///< float64 [].
    int64_t count = 0;
  };

  OrderedMap<Sum> sums_;  ///< By full name, `train/train_op/loss`.
};

}  // namespace stepop
