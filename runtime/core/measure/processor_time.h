#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace stepop {

/// What the threads of a process got of the processors, all of them together, in seconds.
struct ProcessorTime {
  double run = 0;   ///< They ran.
  double wait = 0;  ///< They had work and waited for a processor that ran something else.
};

/// That of this process so far, by /proc/self/task/*/schedstat; none where the system does not
/// count it. Threads that have ended no longer count.
std::optional<ProcessorTime> processor_time();

/// `the machine is busy: ...` with what helps, when threads waited for a processor for at least a
/// third of the time in which they had work; empty otherwise.
std::string busy_machine_text(const ProcessorTime& begin, const ProcessorTime& end, int threads);

/// Looks every 20 seconds whether a training gets the processors that its threads could use.
class ProcessorWatch {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::duration kEvery = std::chrono::seconds(20);

  /// `threads`: how many threads the training computes with.
  explicit ProcessorWatch(int threads, Clock::time_point now = Clock::now());

  /// To be called after each step; mostly it only compares the time. Returns the text of
  /// busy_machine_text the first time that there is one, and an empty text ever after.
  std::string look(Clock::time_point now = Clock::now());

 private:
  int threads_;
  Clock::time_point last_;
  std::optional<ProcessorTime> before_;  ///< None once there is nothing to look for.
};

}  // namespace stepop
