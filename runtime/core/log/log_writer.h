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

/// Makes the pictures of logs and writes their files in a separate thread, because encoding an
/// image takes longer than a small training step. All functions must be called by one thread; they
/// throw the thread's error, after which nothing more is written.
class LogWriter {
 public:
  /// Writes below `folder`. `profile` may be null, and must outlive this.
  LogWriter(std::string folder, Profile* profile) : folder_(std::move(folder)), profile_(profile) {}

  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  /// Hands a log to the thread; waits while kMostWaiting logs are in the queue. The first log
  /// starts the thread: a run without pictures has none.
  void push(UnfinishedLog log);

  /// Whether all logs that were pushed were also taken.
  bool is_idle() const { return taken_ == pushed_; }

  /// The next log whose files are on the disk, in the order of `push`. Does not wait.
  std::optional<UnfinishedLog> take_written();

  /// Waits until all files are on the disk.
  void wait();

 private:
  /// The largest number of logs in the queue, besides the log in progress: limits the images in
  /// memory.
  static constexpr size_t kMostWaiting = 2;

  void write(UnfinishedLog& log) const;

  std::string folder_;
  Profile* profile_;
  int64_t pushed_ = 0;
  int64_t taken_ = 0;
  std::unique_ptr<BackgroundQueue<UnfinishedLog>> queue_;  // last, because its thread uses the
                                                           // other members
};

}  // namespace stepop
