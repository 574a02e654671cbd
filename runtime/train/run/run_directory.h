#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "eval_out/read/find_evaluations.h"
#include "runtime/core/base/ordered_map.h"

namespace stepop {

/// `2026-11-21T10-00-00`, local time: how starts, runs and evaluations are named.
std::string time_name(int64_t seconds_later = 0);

/// The time with which the name of a run or of an evaluation begins, `<time>_<name>`; empty when it
/// does not.
std::string time_in(const std::string& folder_name);

/// The folder of a run, `logs/<time>_<name>`, and the names of what is in it.
class RunDirectory {
 public:
  /// Makes the folder of a new run below `parent`, with a first config in it, and what `fill` puts
  /// there; it appears whole or not at all. Two runs of one second get different folders. What a
  /// process of this host that was killed here left half made is removed. Throws Error with the
  /// path and the reason when it cannot be written.
  static RunDirectory create(const std::string& parent, const std::string& time,
                             const std::string& name, const std::string& config_name = "",
                             const std::string& config = "",
                             const std::function<void(const RunDirectory&)>& fill = {});

  /// The folder of a run that is there. Throws UsageError when it is not, or is no run's.
  static RunDirectory open(const std::string& root);

  /// The same without a look at what is there: for listings, which show what is damaged too.
  static RunDirectory at(const std::string& root);

  const std::string& root() const { return root_; }
  /// The folder's name, `<time>_<name>`, and the part behind the time.
  std::string folder_name() const;
  std::string run_name() const;

  std::string configs() const { return root_ + "/configs"; }
  std::string log_file() const { return root_ + "/train/log.txt"; }
  std::string metrics_file() const { return root_ + "/train/metrics.jsonl"; }
  /// What --profile traced in the start of that time.
  std::string profile(const std::string& time) const {
    return root_ + "/train/profile_" + time + ".json";
  }
  /// Who trains the run; see run_lock.h.
  std::string process_file() const { return root_ + "/train/process.json"; }
  std::string checkpoints() const { return root_ + "/train/checkpoints"; }
  /// `eval/<time>_<name>` and `eval/<time>_<name>/<step>`, relative to the root.
  std::string evaluations(const std::string& time) const;
  std::string evaluation(const std::string& time, int64_t step) const;
  /// The config of the start at `time`; `mode` is `train` or `eval`.
  std::string config_file(const std::string& mode, const std::string& time) const;
  /// Whether `eval/<start>/`, `start` being `<time>_<name>`, is of evaluations without a training:
  /// the configs tell.
  bool is_without_training(const std::string& start) const;

  /// The newest config that a training of this run used; of an evaluation when none trained.
  /// Throws UsageError when there is none.
  std::string last_config() const;

 private:
  explicit RunDirectory(std::string root) : root_(std::move(root)) {}

  std::string root_;
};

/// Takes a time for a start in the run `directory`, which is there, and writes its config,
/// `configs/<mode>_<time>.yaml`; `mode` is `train` or `eval`. What starts make in the run -
/// configs, evaluations, superseded/ - is named by their times, so no two have the same: it is the
/// next second that nobody took, also when several starts look for one at this moment. Nor does a
/// time come before one that is there, whatever the clock and the time zone say: names are in the
/// order of the starts. Of trainings that is one at a time, which has the run's lock. For `eval`
/// the folder `eval/<time>_<name>` is there then. Throws Error when something cannot be written.
std::string take_time(const RunDirectory& directory, const std::string& mode,
                      const std::string& config);

/// The evaluations of a run that came to their end, of its trainings or those without a training,
/// by their starts and then by step. The files are not read.
std::vector<FoundEvaluation> finished_evaluations(const RunDirectory& run, bool of_trainings);

/// `scalars.json` of the evaluation in `folder`, which is written last.
std::string scalars_file(const std::string& folder);

/// The numbers of an evaluation; empty when they cannot be read.
OrderedMap<double> scalars_of(const FoundEvaluation& evaluation);

}  // namespace stepop
