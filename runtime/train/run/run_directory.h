#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "eval_out/read/find_evaluations.h"
#include "runtime/core/base/ordered_map.h"

namespace stepop {

/// `2026-11-21T10-00-00`, local time: the time in names of starts, runs and evaluations.
std::string time_name(int64_t seconds_later = 0);

/// The time with which the name of a run or an evaluation begins, `<time>_<name>`; empty for other
/// names.
std::string time_in(const std::string& folder_name);

/// The folder of a run, `logs/<time>_<name>`, and the names in it.
class RunDirectory {
 public:
  /// Makes the folder of a new run below `parent`, with a first config and the files of `fill`; the
  /// folder appears whole or not at all. Two runs in one second get different folders. Removes
  /// unfinished folders of killed processes of this host. Throws Error with the path and the reason
  /// when the folder cannot be written.
  static RunDirectory create(const std::string& parent, const std::string& time,
                             const std::string& name, const std::string& config_name = "",
                             const std::string& config = "",
                             const std::function<void(const RunDirectory&)>& fill = {});

  /// Opens the folder of an existing run. Throws UsageError when it does not exist, or is not a
  /// run's folder.
  static RunDirectory open(const std::string& root);

  /// The same without a check: for listings, which also show damaged runs.
  static RunDirectory at(const std::string& root);

  const std::string& root() const { return root_; }
  /// The folder's name, `<time>_<name>`, and the part after the time.
  std::string folder_name() const;
  std::string run_name() const;

  std::string configs() const { return root_ + "/configs"; }
  std::string log_file() const { return root_ + "/train/log.txt"; }
  std::string metrics_file() const { return root_ + "/train/metrics.jsonl"; }
  /// The trace of --profile in the start at that time.
  std::string profile(const std::string& time) const {
    return root_ + "/train/profile_" + time + ".json";
  }
  /// The process that trains the run; see run_lock.h.
  std::string process_file() const { return root_ + "/train/process.json"; }
  std::string checkpoints() const { return root_ + "/train/checkpoints"; }
  /// `eval/<time>_<name>` and `eval/<time>_<name>/<step>`, relative to the root.
  std::string evaluations(const std::string& time) const;
  std::string evaluation(const std::string& time, int64_t step) const;
  /// The config of the start at `time`; `mode` is `train` or `eval`.
  std::string config_file(const std::string& mode, const std::string& time) const;
  /// Whether `eval/<start>/`, where `start` is `<time>_<name>`, has evaluations without a training,
  /// according to the configs.
  bool is_without_training(const std::string& start) const;

  /// The newest config of a training of this run; without a training, of an evaluation. Throws
  /// UsageError without any config.
  std::string last_config() const;

 private:
  explicit RunDirectory(std::string root) : root_(std::move(root)) {}

  std::string root_;
};

/// Reserves a time for a start in the existing run `directory`, and writes its config,
/// `configs/<mode>_<time>.yaml`; `mode` is `train` or `eval`. Everything that starts make in the
/// run (configs, evaluations, superseded/) has their time in its name, so each start has a
/// different time: the next free second, even if several starts ask at this moment. A new time is
/// always later than existing times, whatever the clock and the time zone say: the order of names
/// is the order of starts. Only one training calls this at a time, with the run's lock. For `eval`
/// the folder `eval/<time>_<name>` is made too. Throws Error when something cannot be written.
std::string take_time(const RunDirectory& directory, const std::string& mode,
                      const std::string& config);

/// The finished evaluations of a run, either of its trainings or those without a training, ordered
/// by start and then by step. Their files are not read.
std::vector<FoundEvaluation> finished_evaluations(const RunDirectory& run, bool of_trainings);

/// The path of `scalars.json` of the evaluation in `folder`, the file that is written last.
std::string scalars_file(const std::string& folder);

/// The numbers of an evaluation; empty when the file cannot be read.
OrderedMap<double> scalars_of(const FoundEvaluation& evaluation);

}  // namespace stepop
