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
  /// Each entry of `open` that has a known number ran once: a name that looks like that number is a
  /// misspelt one.
  bool is_first_look = false;
};

/// A number that the config names, and what waits for it.
struct WatchedNumber {
  Config config;
  std::string path;  ///< Of the name in `config`.
  std::string metric;
};

/// Throws UnknownMetric when `metric`, which the config names at `path`, is not among the known
/// numbers. Does not throw while no number is known, or when an entry of `open` may log the metric.
void check_is_logged(const Config& config, const std::string& path, const std::string& metric,
                     const LoggedNames& names);

/// Whether `asked` is short for `name`: it has some of its words between slashes, in their order,
/// and ends with the last, as `accuracy` and `validation/accuracy` for
/// `validation/eval_op/accuracy/accuracy`.
bool is_short_for(const std::string& asked, const std::string& name);

/// The one of `names` that `asked` most likely means; empty when it looks like none.
std::string meant_name(const std::string& asked, const std::vector<std::string>& names);

/// `names`, those first that `asked` may mean: of the same split and op, of the same callback, with
/// the same last part; short names such as `val_acc` are compared word by word.
std::vector<std::string> sorted_by_meaning(const std::string& asked,
                                           const std::vector<std::string>& names);

}  // namespace stepop
