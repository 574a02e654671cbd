#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/formats/state.h"
#include "runtime/core/log/logs.h"

namespace stepop {

/// The means of what train ops return, from one log to the next. Sums are float64, whatever the
/// type of the scalars, and stay on the device; nothing is read back before a log is due. A part of
/// a run's state, so that the log after a restart covers the steps before it as well.
class ScalarMeans {
 public:
  /// Adds what the op of that name, `train/train_op`, returned. `share`: the part of the batch that
  /// this process has; the means of all processes are then to be added up.
  void add(const std::string& op, const Scalars& scalars, double share = 1);

  /// The means by op and key, in the order in which they came first; then begins anew.
  OrderedMap<Logs> take();

  /// Adds those of another process, as its `save` gave them.
  void add_other(const State& state);

  /// What was added counts for nothing here, as another process has it.
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
