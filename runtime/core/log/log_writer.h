#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runtime/core/log/log_files.h"
#include "runtime/core/measure/profile.h"
#include "runtime/core/system/background_queue.h"

namespace stepop {

/// Makes the pictures of logs and writes their files, in a thread of its own: an image takes longer
/// to encode than a small step to train. All functions are for one thread; they throw what the
/// thread failed with, and after that nothing more is written.
class LogWriter {
 public:
  /// Writes below `folder`. `profile` may be null, and must outlive this.
  LogWriter(std::string folder, Profile* profile) : folder_(std::move(folder)), profile_(profile) {}

  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  /// Hands a log over; waits while kMostWaiting others wait for the thread. The first one starts
  /// it: a run without pictures has none.
  void push(UnfinishedLog log);

  /// Whether all that were pushed were taken.
  bool is_idle() const { return taken_ == pushed_; }

  /// The next one, in the order of `push`, whose files are on the disk. Does not wait.
  std::optional<UnfinishedLog> take_written();

  /// Waits until the files of all are on the disk.
  void wait();

 private:
  /// Beside the one that is worked on: so many logs' images are kept at most.
  static constexpr size_t kMostWaiting = 2;

  void write(UnfinishedLog& log) const;

  std::string folder_;
  Profile* profile_;
  int64_t pushed_ = 0;
  int64_t taken_ = 0;
  std::unique_ptr<BackgroundQueue<UnfinishedLog>> queue_;  // last: its thread uses the others
};

}  // namespace stepop
