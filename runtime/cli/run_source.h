#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/cli/arguments.h"
#include "runtime/config/config.h"
#include "runtime/run/run_directory.h"

namespace stepop {

/// What a start begins from: base configs, and the run of `-p`.
struct RunSource {
  std::vector<std::string> base;
  std::optional<RunDirectory> project;
};

/// `-p RUN` with the newest config of that run when no `-b` is given; `-p RUN/configs/x.yaml` means
/// that config and that run. Throws UsageError for a folder that is no run's.
RunSource find_source(const Arguments& arguments);

/// The config that these arguments resolve to, with absolute paths.
Config read_run_config(const Arguments& arguments, const RunSource& source);

/// The second part of the run folder's name: `-n`, else `experiment_name`, else that of the run.
std::string run_name(const Arguments& arguments, const std::optional<RunDirectory>& project,
                     const Config& config);

}  // namespace stepop
