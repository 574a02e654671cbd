#pragma once

#include <set>
#include <string>
#include <vector>

#include "runtime/core/log/console.h"
#include "runtime/train/loop/run_checkpoints.h"
#include "runtime/train/loop/session.h"

namespace stepop {

/// The numbers that a training logs and evaluates, for all that the runtime decides by them: early
/// stopping, schedules that follow a metric, which checkpoint is the best.
class LoggedNumbers {
 public:
  /// All must outlive this.
  LoggedNumbers(Session& session, RunCheckpoints& checkpoints, Console& console)
      : session_(session), checkpoints_(checkpoints), console_(console) {}

  /// Takes those of one event, by their full names: at the session's position, `now`.
  void take(const OrderedMap<double>& scalars, const Elapsed& now);

  /// Throws UnknownMetric for a metric of the config that never came. To be called when an
  /// evaluation is over: then it is known which numbers its callbacks give. `open`: what numbers
  /// begin with that may come later.
  void check(const std::vector<std::string>& open) const;

 private:
  Session& session_;
  RunCheckpoints& checkpoints_;
  Console& console_;
  std::set<std::string> seen_;  ///< Full names of what came in this start.
};

}  // namespace stepop
