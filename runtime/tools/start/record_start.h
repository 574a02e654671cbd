#pragma once

#include <memory>
#include <set>
#include <string>

#include "runtime/train/run/run_directory.h"
#include "runtime/train/run/start_record.h"
#include "runtime/train/run/start_recorder.h"
#include "runtime/train/session/session.h"

namespace stepop {

/// Writes `configs/<mode>_<time>.json` for a start whose config is saved. `start` has the facts
/// that only the command line knows; the rest comes from the session and the machine. `variables`
/// are the environment variables that the config uses.
std::unique_ptr<StartRecorder> record_start(const RunDirectory& directory, const std::string& mode,
                                            StartRecord start, Session& session,
                                            const std::set<std::string>& variables);

}  // namespace stepop
