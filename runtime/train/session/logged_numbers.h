#pragma once

#include <set>
#include <string>
#include <vector>

#include "runtime/core/log/console.h"
#include "runtime/train/session/run_checkpoints.h"
#include "runtime/train/session/session.h"

namespace stepop {

/// The numbers of a training's logs and evaluations, for all decisions of the runtime: early
/// stopping, schedules that follow a metric, the choice of the best checkpoint.
class LoggedNumbers {
 public:
  /// All must outlive this.
  LoggedNumbers(Session& session, RunCheckpoints& checkpoints, Console& console)
      : session_(session), checkpoints_(checkpoints), console_(console) {}

  /// Takes the numbers of one event, by their full names, at the session's position and at `now`.
  void take(const OrderedMap<double>& scalars, const Elapsed& now);

  /// Throws UnknownMetric for a metric of the config that was never logged. Called after an
  /// evaluation, when the numbers of its callbacks are known. `open`: prefixes of numbers that may
  /// still come.
  void check(const std::vector<std::string>& open) const;

 private:
  Session& session_;
  RunCheckpoints& checkpoints_;
  Console& console_;
  std::set<std::string> seen_;  ///< Full names of the numbers in this start.
};

}  // namespace stepop
