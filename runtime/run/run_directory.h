#pragma once

#include <cstdint>
#include <functional>
#include <string>

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
  /// The folder of the event files for TensorBoard.
  std::string tensorboard() const { return root_ + "/train/tensorboard"; }
  /// What --profile traced in the start of that time.
  std::string profile(const std::string& time) const {
    return root_ + "/train/profile_" + time + ".json";
  }
  /// Who trains the run; see run_lock.h.
  std::string process_file() const { return root_ + "/train/process.json"; }
  std::string checkpoints() const { return root_ + "/train/checkpoints"; }
  std::string images(const std::string& split, const std::string& op) const {
    return root_ + "/train/" + split + "/" + op;
  }
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

}  // namespace stepop
