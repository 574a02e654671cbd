#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace stepop {

/// The processor time of all threads of a process together, in seconds.
struct ProcessorTime {
  double run = 0;   ///< The threads ran.
  double wait = 0;  ///< The threads had work and waited for a processor that ran something else.
};

/// The time of this process so far, from /proc/self/task/*/schedstat; nothing on a system that does
/// not count it. Threads that have ended no longer count.
std::optional<ProcessorTime> processor_time();

/// `the machine is busy: ...` with advice, when threads waited for a processor for at least a third
/// of the time in which they had work; empty otherwise.
std::string busy_machine_text(const ProcessorTime& begin, const ProcessorTime& end, int threads);

/// Checks every 20 seconds whether a training gets the processors that its threads could use.
class ProcessorWatch {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::duration kEvery = std::chrono::seconds(20);

  /// `threads`: the number of the training's compute threads.
  explicit ProcessorWatch(int threads, Clock::time_point now = Clock::now());

  /// Called after each step; most calls only compare the time. Returns the text of
  /// busy_machine_text the first time that it is not empty, and an empty text ever after.
  std::string look(Clock::time_point now = Clock::now());

 private:
  int threads_;
  Clock::time_point last_;
  std::optional<ProcessorTime> before_;  ///< Nothing once the watch has ended.
};

}  // namespace stepop
