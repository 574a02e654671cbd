#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/value/value.h"
#include "runtime/tools/sweep/sweep_file.h"

namespace stepop {

/// One run of a plan.
struct PlannedRun {
  int64_t number = 0;  ///< Counted from 1.
  Value::Map values;   ///< By the keys' paths.
};

/// The folder of a sweep, `logs/sweeps/<name>`, and its runs. `plan.yaml` is written after the
/// config of every run, so a sweep has a complete plan or none.
class SweepPlan {
 public:
  /// An empty plan of the sweep `name` in `folder`.
  SweepPlan(std::string folder, std::string name)
      : folder_(std::move(folder)), name_(std::move(name)) {}

  /// The plan in a folder; nothing without a plan.yaml. Throws Error for a damaged plan.
  static std::optional<SweepPlan> read(const std::string& folder);

  /// Makes this the plan of `sweep`, whose points resolve to `configs`. The plan's runs keep their
  /// numbers and must all be among the points, with the same configs; other points become new runs.
  /// Returns the new runs by their places in `sweep.points`. Throws UsageError with the differences
  /// when a run of the plan has changed. Writes nothing.
  std::vector<size_t> extend(const SweepFile& sweep, const std::vector<std::string>& configs);

  /// Writes plan/<number>.yaml for the runs that `extend` added.
  void write_configs() const;
  /// Removes these files.
  void remove_configs() const;
  /// Writes plan.yaml.
  void write() const;

  const std::string& folder() const { return folder_; }
  const std::string& name() const { return name_; }
  const std::vector<PlannedRun>& runs() const { return runs_; }
  const std::vector<std::string>& over() const { return over_; }
  const std::string& metric() const { return metric_; }
  const std::string& mode() const { return mode_; }
  int64_t jobs() const { return jobs_; }

  /// The keys with values, in the order of their first occurrence.
  std::vector<std::string> keys() const;

  /// `lr_search_0003`: the name of the run's folder after its time.
  std::string run_name(const PlannedRun& run) const;
  std::string config_file(const PlannedRun& run) const;
  /// The file with the output of the run's processes.
  std::string output_file(const PlannedRun& run) const;
  /// The folder of the run; empty if it does not exist yet.
  std::string run_folder(const PlannedRun& run) const;
  /// The folders of all runs, in order, from a single look at the disk.
  std::vector<std::string> run_folders() const;

 private:
  std::string folder_;
  std::string name_;
  std::vector<PlannedRun> runs_;
  std::vector<std::string> over_;
  std::string metric_;
  std::string mode_;
  int64_t jobs_ = 1;
  std::vector<std::string> new_configs_;  ///< The configs of the last runs.
};

/// `0003`
std::string number_name(int64_t number);

/// The folder of the sweep `name` below a folder of runs: `logs/sweeps/<name>`.
std::string sweep_folder(const std::string& logs, const std::string& name);

/// The sweeps in a folder of runs, or in its folder `sweeps`: their folders, sorted.
std::vector<std::string> find_sweeps(const std::string& logs);

}  // namespace stepop
