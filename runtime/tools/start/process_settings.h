#pragma once

#include <optional>

#include "runtime/tools/cli/arguments.h"
#include "runtime/tools/start/run_source.h"

namespace stepop {

/// Arguments with the settings for processes, and where they begin from if that was found.
struct ProcessSettings {
  Arguments arguments;
  std::optional<RunSource> source = {};
  double timeout = 300;  ///< `distributed/timeout` in seconds.
};

/// Applies a config's settings for the processes of a training, before anything else of the
/// training exists. With another `thread_wait`, the program restarts itself and this function does
/// not return. `--tuned auto` becomes the kept settings. `processes` becomes `--processes` unless
/// `--processes` or a launcher gives the number; a resumed run keeps its `--processes`. The result
/// records the real number of processes. Throws UsageError for invalid values; a config that cannot
/// be read is left to the code that needs it.
ProcessSettings with_process_settings(const Arguments& arguments);

}  // namespace stepop
