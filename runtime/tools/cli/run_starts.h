#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/config/value.h"
#include "runtime/train/run/run_directory.h"
#include "runtime/train/run/start_record.h"

namespace stepop {

/// A start of a run, as far as the run knows it.
struct KnownStart {
  std::string time = {};
  std::string config_file = {};
  Value config = {};
  std::string problem = {};                ///< Why its config cannot be read; empty when it can.
  std::optional<StartRecord> record = {};  ///< None of a start of an older version.
  std::string command = {};                ///< Its command line; empty when that is not known.
  std::string git = {};  ///< `main a1b2c3d, clean`, from the log when there is no record.
  std::optional<int64_t> step = {};  ///< At which it began.
};

/// What is recorded beside a config of a run; nothing of a start of an older version.
std::optional<StartRecord> record_beside(const std::string& config_file);

/// The starts of a run that trained, or those that evaluated without a training, by their times.
std::vector<KnownStart> trainings_of(const RunDirectory& run);
std::vector<KnownStart> evaluations_of(const RunDirectory& run);

}  // namespace stepop
