#pragma once

#include <string>
#include <vector>

#include "runtime/when/settings.h"

namespace stepop {

/// The ops of one split that a config calls, by the kind of each.
struct DueOps {
  std::string split;
  std::vector<std::string> train, log, eval;

  /// Whether they see batches of a training; an evaluation has batches of its own.
  bool is_in_training() const { return !train.empty() || !log.empty(); }
};

/// Every op that the config will ever call, in a training or in an evaluation without one.
std::vector<DueOps> due_ops(const Settings& settings, bool train);

}  // namespace stepop
