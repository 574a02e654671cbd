#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "runtime/core/system/start_thread.h"

namespace stepop {

/// Hands items to a thread of its own, which calls a function with each, in order. What the
/// function throws is thrown by every later `push`, `check` and `drain`; nothing is called after
/// it.
template <class Item>
class BackgroundQueue {
 public:
  /// At most `limit` items wait, beside the one that is worked on. `task` is what the thread does,
  /// for the error when it cannot start: `writes outputs`.
  BackgroundQueue(const std::string& task, size_t limit, std::function<void(Item&)> function)
      : limit_(limit),
        function_(std::move(function)),
        thread_(start_thread(task, [this] { run(); })) {}

  ~BackgroundQueue() { close(); }
  BackgroundQueue(const BackgroundQueue&) = delete;
  BackgroundQueue& operator=(const BackgroundQueue&) = delete;

  /// Waits while the queue is full.
  void push(Item item) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_.size() < limit_ || error_; });
    if (error_) std::rethrow_exception(error_);
    waiting_.push_back(std::move(item));
    changed_.notify_all();
  }

  /// The first of the items that are done with and were not taken; empty when there is none.
  std::optional<Item> take_done() {
    const std::lock_guard lock(mutex_);
    if (done_.empty()) return std::nullopt;
    Item item = std::move(done_.front());
    done_.pop_front();
    return item;
  }

  /// Throws what the function threw, if it did.
  void check() {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
  }

  /// Returns when all items are done with; throws what the function threw, if it did.
  void drain() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return (waiting_.empty() && !is_busy_) || error_; });
    if (error_) std::rethrow_exception(error_);
  }

  /// Returns when all items are done with or the function has thrown. Nothing is pushed afterwards.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      is_closing_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return !waiting_.empty() || is_closing_; });
      if (waiting_.empty()) return;
      Item item = std::move(waiting_.front());
      waiting_.pop_front();
      is_busy_ = true;
      changed_.notify_all();
      lock.unlock();
      std::exception_ptr error;
      try {
        function_(item);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      is_busy_ = false;
      changed_.notify_all();
      if (error) {
        error_ = error;
        waiting_.clear();
        return;
      }
      done_.push_back(std::move(item));
    }
  }

  const size_t limit_;
  const std::function<void(Item&)> function_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> waiting_;
  std::deque<Item> done_;
  std::exception_ptr error_;
  bool is_busy_ = false;
  bool is_closing_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace stepop
