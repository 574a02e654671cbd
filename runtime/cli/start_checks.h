#pragma once

#include "runtime/cli/run_source.h"
#include "runtime/loop/session.h"

namespace stepop {

/// What is wrong with a start, found before it leaves a trace: each throws UsageError.

/// Words that do not go together.
void check_arguments(const Arguments& arguments, const RunSource& source);

/// Whether there is a checkpoint, for what needs one.
void check_checkpoint(const Arguments& arguments, const RunSource& source, bool has_one);

/// Of a run without a checkpoint there is nothing to evaluate, unless the config waits for it.
void check_can_wait(const RunSource& source, const Config& config);

/// What an evaluation needs; and text that is not UTF-8, which no checkpoint could hold.
void check_session(const Arguments& arguments, const RunSource& source, const Session& session);

}  // namespace stepop
