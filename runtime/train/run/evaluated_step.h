#pragma once

#include <cstdint>
#include <optional>

#include "runtime/train/run/run_directory.h"

namespace stepop {

/// `eval/reached.json`, `{"step": 500}`: the checkpoint up to which `eval_forever` has come, which
/// was evaluated or passed over. A training that may not run ahead goes by it.

/// Nothing when there is none, or it cannot be read.
std::optional<int64_t> evaluated_step(const RunDirectory& run);

/// Throws Error when it cannot be written.
void write_evaluated_step(const RunDirectory& run, int64_t step);

}  // namespace stepop
