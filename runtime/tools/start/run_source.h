#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/core/config/config.h"
#include "runtime/tools/cli/arguments.h"
#include "runtime/tools/code/compiler.h"
#include "runtime/tools/code/user_code.h"
#include "runtime/train/run/run_directory.h"
#include "runtime/train/session/session.h"

namespace stepop {

/// What files and overrides resolve to.
struct ResolvedConfig {
  std::vector<Override> overrides;
  Value root;
  std::set<std::string> variables;  ///< The environment variables that it uses.
};

/// The origin of a start: base configs, and the run of `-p`.
struct RunSource {
  std::vector<std::string> base;
  std::optional<RunDirectory> project;
  std::string config_of_run = {};  ///< The config in `base` that is the run's own, or empty.
  /// The files of `base`, merged and not yet resolved, once they were read.
  std::optional<Value> files = {};

  std::optional<ResolvedConfig> resolved = {};  ///< The last one.

  /// Reads the files unless they were read: another program may have written them since.
  const Value& read_files();
  /// The config with these overrides, resolved unless it was resolved with the same ones.
  const ResolvedConfig& resolve(const std::vector<Override>& overrides);
};

/// `-p RUN` with the newest config of the run: alone if no `-b` is given, and below the `-b`
/// configs for `stepop predict`; `-p RUN/configs/x.yaml` means that config and that run. Throws
/// UsageError for a folder that is no run.
RunSource find_source(const Arguments& arguments);

/// `--resume`: with the newest run of the name `-n` in `--logs` as `-p`, when there is one; its own
/// config takes the place of `-b`. Throws UsageError for other flags that do not fit.
Arguments with_newest_run(const Arguments& arguments);

/// A config, and the user code that it names.
struct RunConfig {
  Config config;
  UserCode code = {};
  std::set<std::string> variables = {};  ///< The environment variables that the config uses.
  std::string code_note =
      {};  ///< How the run's copies of code and scripts differ from the originals; may be empty.
};

/// The config that the arguments resolve to, with absolute paths. Its `code` is compiled and
/// loaded; a run's code comes from the run's own copy, unless --current-code is given.
RunConfig read_run_config(const Arguments& arguments, RunSource& source);

/// Compiles and loads the `code` of a config, and reports slow steps on the standard error. With
/// the folder of a run, the sources are the run's copies.
UserCode load_code(const Config& config, const std::string& run, Optimization optimization);

/// Quick for a start that ends soon: a debug run, a check.
Optimization optimization_of(const Arguments& arguments);

/// A line on how the user code differs from the copy in the run at `run`; empty when it does not.
/// `is_current`: the current code was loaded.
std::string code_note(const std::string& run, bool is_current);

/// A line on the configs of -b that changed since the run took them, which a resume does not read;
/// empty when none did, or when this start was given configs.
std::string config_note(const Arguments& arguments, const RunSource& source);

/// The second part of the run folder's name: `-n`, else `experiment_name`, else the run's name.
std::string run_name(const Arguments& arguments, const std::optional<RunDirectory>& project,
                     const Config& config);

// Errors in a start, found before it writes anything: each check throws UsageError.

/// Whether a start continues the run of -p, instead of making a new run.
bool continues_run(const Arguments& arguments);

/// Whether -n names an evaluation in the run of -p, `eval_hook/name`; otherwise -n names a new run.
bool names_evaluation(const Arguments& arguments);

/// Checks for words that exclude each other.
void check_arguments(const Arguments& arguments, const RunSource& source);

/// Checks that there is a checkpoint, if the arguments need one.
void check_checkpoint(const Arguments& arguments, const RunSource& source, bool has_one);

/// Without a checkpoint there is nothing to evaluate, unless the config waits for a run's
/// checkpoints, or a new run gets weights from elsewhere.
void check_without_checkpoint(const RunSource& source, const Config& config);

/// Checks an evaluation's requirements, and that all text is UTF-8, as checkpoints require.
void check_session(const Arguments& arguments, const RunSource& source, const Session& session);

}  // namespace stepop
