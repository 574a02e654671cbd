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

/// Hands items to a separate thread, which calls a function with each, in order. After an exception
/// of the function, every later `push`, `check` and `drain` throws it, and the function is not
/// called again.
template <class Item>
class BackgroundQueue {
 public:
  /// At most `limit` items wait, besides the item in progress. `task` says what the thread does,
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

  /// The first finished item that was not taken yet; empty when there is none.
  std::optional<Item> take_done() {
    const std::lock_guard lock(mutex_);
    if (done_.empty()) return std::nullopt;
    Item item = std::move(done_.front());
    done_.pop_front();
    return item;
  }

  /// Throws the function's exception, if any.
  void check() {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
  }

  /// Returns when all items are finished; throws the function's exception, if any.
  void drain() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return (waiting_.empty() && !is_busy_) || error_; });
    if (error_) std::rethrow_exception(error_);
  }

  /// Returns when all items are finished or the function has thrown. Nothing may be pushed
  /// afterwards.
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
  std::thread thread_;  // last, because it uses the other members
};

}  // namespace stepop
