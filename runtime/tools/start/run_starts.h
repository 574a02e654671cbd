#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/value/value.h"
#include "runtime/train/run/run_directory.h"
#include "runtime/train/run/start_record.h"

namespace stepop {

/// The known facts about a start of a run.
struct KnownStart {
  std::string time = {};
  std::string config_file = {};
  Value config = {};
  std::string problem = {};                ///< Why the config cannot be read; empty when it can.
  std::optional<StartRecord> record = {};  ///< Nothing for a start of an older version.
  std::string command = {};                ///< The command line; empty when it is unknown.
  std::string git = {};  ///< `main a1b2c3d, clean`, from the log when there is no record.
  std::optional<int64_t> step = {};  ///< The first step.
};

/// The record next to a config of a run; nothing for a start of an older version.
std::optional<StartRecord> record_beside(const std::string& config_file);

/// The record of the newest start that was given configs; a resume without -b takes them again.
/// Nothing when no record has them.
std::optional<StartRecord> start_with_configs(const RunDirectory& run);

/// The starts of a run that trained, or that evaluated without a training, sorted by time.
std::vector<KnownStart> trainings_of(const RunDirectory& run);
std::vector<KnownStart> evaluations_of(const RunDirectory& run);

}  // namespace stepop
