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

  /// What corrects it on the command line: `--checkpoints/metric validation/eval_op/mse`, with
  /// NAME in place of a name when no known one is near.
  const std::string& argument() const { return argument_; }

 private:
  std::string argument_;
};

/// The full names of numbers that a run logs, as far as they are known.
struct LoggedNames {
  std::vector<std::string> known;  ///< `train/log_op/loss`, `validation/eval_op/mse`
  /// Ops and callbacks, `train/train_op`, that may give further numbers.
  std::vector<std::string> open;
};

/// Throws UnknownMetric when `metric`, which the config names at `path`, is none of the known
/// numbers. Silent while none is known, and about a number of what is open.
void check_is_logged(const Config& config, const std::string& path, const std::string& metric,
                     const LoggedNames& names);

}  // namespace stepop
