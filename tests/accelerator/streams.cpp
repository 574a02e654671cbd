#include "tests/accelerator/streams.h"

#include <c10/util/Exception.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "tests/accelerator/accelerator.h"
#include "tests/accelerator/graph.h"

namespace stepop::accelerator {
namespace {

constexpr size_t kStreams = 8;

/// A queue, and a thread that never ends.
class Queue {
 public:
  void add(std::function<void()> task) {
    const std::lock_guard guard(mutex_);
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    tasks_.push_back(std::move(task));
    changed_.notify_all();
  }

  void drain() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return tasks_.empty(); });
  }

  bool is_idle() {
    const std::lock_guard guard(mutex_);
    return tasks_.empty();
  }

 private:
  [[noreturn]] void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return !tasks_.empty(); });
      const std::function<void()> task = tasks_.front();
      lock.unlock();
      task();
      lock.lock();
      tasks_.pop_front();  // only now: the queue is empty when all is done
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::thread thread_;
};

Queue& queue(c10::StreamId stream) {
  static auto& queues = *new std::array<Queue, kStreams>;
  return queues.at(static_cast<size_t>(stream));
}

thread_local c10::StreamId current = 0;
std::atomic<int64_t> next = 0;
std::atomic<int64_t> delay = 0;
std::atomic<int64_t> copies_behind = 0;
std::atomic<int64_t> copies_beside = 0;
std::mutex waits_mutex;

std::map<std::string, int64_t>& waits() {
  static auto& counted = *new std::map<std::string, int64_t>;
  return counted;
}

}  // namespace

void enqueue(c10::StreamId stream, std::function<void()> task) {
  queue(stream).add(std::move(task));
}
void drain(c10::StreamId stream) { queue(stream).drain(); }
bool is_idle(c10::StreamId stream) { return queue(stream).is_idle(); }
void drain_all() {
  for (size_t i = 0; i < kStreams; ++i) drain(static_cast<c10::StreamId>(i));
}

c10::StreamId current_stream() { return current; }
c10::StreamId exchange_stream(c10::StreamId stream) { return std::exchange(current, stream); }
c10::StreamId next_stream() { return 1 + next++ % static_cast<int64_t>(kStreams - 1); }

void delay_copy() {
  if (delay > 0) std::this_thread::sleep_for(std::chrono::microseconds(delay));
}

void set_copy_delay(int64_t microseconds) { delay = microseconds; }

void count_wait(const std::string& reason) {
  TORCH_CHECK(!is_capturing(), "operation not permitted when stream is capturing: ", reason);
  const std::lock_guard guard(waits_mutex);
  ++waits()[reason];
}

std::map<std::string, int64_t> take_waits() {
  const std::lock_guard guard(waits_mutex);
  return std::exchange(waits(), {});
}

void count_copy_behind(c10::StreamId stream) {
  ++copies_behind;
  if (stream != 0) ++copies_beside;
}
int64_t take_copies_behind() { return copies_behind.exchange(0); }
int64_t take_copies_beside() { return copies_beside.exchange(0); }

}  // namespace stepop::accelerator
