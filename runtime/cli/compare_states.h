#pragma once

#include <string>

#include "runtime/run/run_directory.h"

namespace stepop {

/// A line on how the checkpoints of two runs, called `a` and `b`, differ at the newest step of
/// which both have one: whether all tensors have the same bits, weights and everything else that is
/// tracked; else how many differ, and the first by how much. Says so when there is no such step, or
/// a checkpoint cannot be read.
std::string compare_states(const std::string& a, const RunDirectory& run_a, const std::string& b,
                           const RunDirectory& run_b);

}  // namespace stepop
