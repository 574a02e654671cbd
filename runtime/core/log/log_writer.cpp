#include "runtime/core/log/log_writer.h"

#include <pthread.h>

#include <utility>

#include "runtime/core/measure/one_thread.h"

namespace stepop {
namespace {

/// Called by the thread before its first log.
void begin_thread() {
  ::pthread_setname_np(::pthread_self(), "pictures");
  compute_with_one_thread();
}

}  // namespace

void LogWriter::push(UnfinishedLog log) {
  if (!queue_) {
    queue_ = std::make_unique<BackgroundQueue<UnfinishedLog>>(
        "writes the pictures of logs", kMostWaiting,
        [this, is_first = true](UnfinishedLog& next) mutable {
          if (std::exchange(is_first, false)) begin_thread();
          write(next);
        });
  }
  queue_->push(std::move(log));
  ++pushed_;
}

void LogWriter::write(UnfinishedLog& log) const {
  const ThreadSpan span(profile_, "pictures", "make pictures");
  make_pictures(log);
  write_log_files(folder_, log.event.step, log.record);
}

std::optional<UnfinishedLog> LogWriter::take_written() {
  if (is_idle()) return std::nullopt;
  auto log = queue_->take_done();
  if (log) {
    ++taken_;
  } else {
    queue_->check();
  }
  return log;
}

void LogWriter::wait() {
  if (!is_idle()) queue_->drain();
}

}  // namespace stepop
