#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/train/run/data_files.h"
#include "runtime/train/run/start_record.h"

namespace stepop {

/// Writes the record of a start. Slow parts (git, the data's files) are collected in a thread of
/// low priority during the first steps, and added to the file. A failure never ends a training: the
/// record, or `problem()`, reports it.
class StartRecorder {
 public:
  /// The work of the thread.
  struct Work {
    std::vector<std::string> git_folders = {};  ///< Folders whose working trees are read.
    std::map<std::string, std::string> data =
        {};  ///< Files and folders by the paths of their keys.
    DataChecksums checksums = DataChecksums::kSize;
  };

  /// `stem` is the path without `.json`, `run` the run's folder. When this returns, the file exists
  /// with everything except the thread's part.
  StartRecorder(std::string stem, std::string run, StartRecord record, Work work);
  /// Waits up to two seconds for the thread, unless `is_in_a_hurry`; the rest is then left out.
  ~StartRecorder();
  StartRecorder(const StartRecorder&) = delete;
  StartRecorder& operator=(const StartRecorder&) = delete;

  void set_hurry(std::function<bool()> is_in_a_hurry) { is_in_a_hurry_ = std::move(is_in_a_hurry); }

  /// Why there is no record; empty when there is a record.
  const std::string& problem() const { return problem_; }

 private:
  void collect();
  void collect_git();
  void collect_data();
  void write() const;

  std::string stem_;
  std::string run_;
  StartRecord record_;
  Work work_;
  std::string problem_;
  std::function<bool()> is_in_a_hurry_;
  std::atomic<bool> stops_ = false;
  std::mutex mutex_;
  std::condition_variable done_;
  bool is_done_ = false;  ///< Protected by the mutex.
  std::thread thread_;
};

}  // namespace stepop
