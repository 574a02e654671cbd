#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/core/config/config.h"
#include "runtime/tools/cli/arguments.h"
#include "runtime/train/loop/session.h"
#include "runtime/train/run/run_directory.h"

namespace stepop {

/// What a start begins from: base configs, and the run of `-p`.
struct RunSource {
  std::vector<std::string> base;
  std::optional<RunDirectory> project;
  std::string config_of_run = {};  ///< The one of `base` that is the run's own; empty: none is.
};

/// `-p RUN` with the newest config of that run when no `-b` is given, or below what `-b` gives for
/// `stepop predict`; `-p RUN/configs/x.yaml` means that config and that run. Throws UsageError for
/// a folder that is no run's.
RunSource find_source(const Arguments& arguments);

/// A config, and the user's own code that it named.
struct RunConfig {
  Config config;
  std::vector<std::string> code_files = {};  ///< Sources and headers that were compiled.
  std::set<std::string> variables = {};      ///< Of the environment, which it asked for.
  std::string code_note =
      {};  ///< Where a run's own copy of them differs from the originals, or empty.
};

/// The config that these arguments resolve to, with absolute paths. Its `code` is compiled and
/// loaded; that of a run from the run's own copy, unless --current-code is given.
RunConfig read_run_config(const Arguments& arguments, const RunSource& source);

/// Compiles and loads the `code` of a config, and reports on the standard error what takes long.
/// With the folder of a run the sources are its copies. Returns the files that were compiled.
std::vector<std::string> load_code(const Config& config, const std::string& run);

/// A line on how the user's own code differs from the copy that the run at `run` has; empty when it
/// does not. `is_current`: the code as it is now is what was loaded.
std::string code_note(const std::string& run, bool is_current);

/// The second part of the run folder's name: `-n`, else `experiment_name`, else that of the run.
std::string run_name(const Arguments& arguments, const std::optional<RunDirectory>& project,
                     const Config& config);

// What is wrong with a start, found before it leaves a trace: each check throws UsageError.

/// Whether a start continues the run of -p instead of making a new one.
bool continues_run(const Arguments& arguments);

/// Whether -n is the name of an evaluation in the run of -p, `eval_hook/name`; else it is that of a
/// new run.
bool names_evaluation(const Arguments& arguments);

/// Words that do not go together.
void check_arguments(const Arguments& arguments, const RunSource& source);

/// Whether there is a checkpoint, for what needs one.
void check_checkpoint(const Arguments& arguments, const RunSource& source, bool has_one);

/// Without a checkpoint there is nothing to evaluate, unless the config waits for those of a run,
/// or has weights from elsewhere for a new one.
void check_without_checkpoint(const RunSource& source, const Config& config);

/// What an evaluation needs; and text that is not UTF-8, which no checkpoint could hold.
void check_session(const Arguments& arguments, const RunSource& source, const Session& session);

}  // namespace stepop
