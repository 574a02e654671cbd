#pragma once

#include <string>

#include "runtime/train/run/run_directory.h"

namespace stepop {

/// A line that compares two runs, called `a` and `b`, at the newest step with a checkpoint of both:
/// all tensors (weights and other tracked state) have the same bits, or the line has the number of
/// different tensors and the size of the first difference. Needs no LibTorch.
std::string compare_states(const std::string& a, const RunDirectory& run_a, const std::string& b,
                           const RunDirectory& run_b);

}  // namespace stepop
