#pragma once

#include <string>
#include <vector>

#include "runtime/core/config/config.h"

namespace stepop {

/// A metric that the config names and that nothing logs.
class UnknownMetric : public UsageError {
 public:
  UnknownMetric(const UsageError& error, std::string argument)
      : UsageError(error.what()), argument_(std::move(argument)) {}

  /// The argument that corrects the name on the command line: `--checkpoints/metric
  /// validation/eval_op/mse`, with NAME as a placeholder when no known name is near.
  const std::string& argument() const { return argument_; }

 private:
  std::string argument_;
};

/// The full names of the numbers that a run logs, as far as they are known.
struct LoggedNames {
  std::vector<std::string> known;  ///< `train/log_op/loss`, `validation/eval_op/mse`
  /// Ops and callbacks, such as `train/train_op`, that may log further numbers.
  std::vector<std::string> open;
};

/// Throws UnknownMetric when `metric`, which the config names at `path`, is not among the known
/// numbers. Does not throw while no number is known, or when an entry of `open` may log the metric.
void check_is_logged(const Config& config, const std::string& path, const std::string& metric,
                     const LoggedNames& names);

}  // namespace stepop
