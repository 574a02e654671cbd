#pragma once

#include <cstdint>
#include <optional>

#include "runtime/train/run/run_directory.h"

namespace stepop {

/// `eval/reached.json`, `{"step": 500}`: the last checkpoint that `eval_forever` evaluated or
/// skipped. A training with `run_ahead` waits for it.

/// Nothing when the file is missing or cannot be read.
std::optional<int64_t> evaluated_step(const RunDirectory& run);

/// Throws Error when the file cannot be written.
void write_evaluated_step(const RunDirectory& run, int64_t step);

}  // namespace stepop
