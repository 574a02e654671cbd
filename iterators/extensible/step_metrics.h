#pragma once

#include <string>
#include <utility>

#include "runtime/core/log/logs.h"

namespace stepop::extensible {

/// What the parts of the steps log in an iteration. Numbers are means over the parts of its batch,
/// weighted by their sizes.
class StepMetrics {
 public:
  /// Reads values on the CPU at once, which is cheaper than weighting and adding tensors.
  void add(const std::string& name, const Scalar& value, double share);
  /// Adds `<prefix>_<name>` of everything in `logs`.
  void add_all(const std::string& prefix, Logs logs, double share);

  Scalars take() { return std::move(scalars_); }
  /// Everything but the numbers.
  Logs take_others() { return std::move(others_); }

 private:
  Scalars scalars_;
  Logs others_;
};

}  // namespace stepop::extensible
