#pragma once

#include <semaphore>
#include <thread>

namespace stepop {

/// Decides whether threads that wait for each other may spin: they keep a core busy while they look
/// for their next work. Spinning makes short steps up to twice as fast on cores that no other
/// program wants, and many times slower on other cores, because it takes time from the threads that
/// others wait for.
class SpinPolicy {
 public:
  /// `threads`: the number of threads.
  explicit SpinPolicy(int threads);

  /// Records a period in seconds, and the total time in it during which threads of this process
  /// were ready to run without a core. Returns whether the threads may spin from now on.
  bool note(double elapsed, double waited);

 private:
  double much_;    ///< Share of the time above which others want the cores.
  double little_;  ///< Share below which they do not.
  double needed_;  ///< Seconds of `quiet_` before spinning begins again.
  double quiet_ = 0;
  double spun_ = 0;  ///< Seconds since spinning began.
  bool spins_ = true;
};

/// During its lifetime, OpenMP's threads spin for some milliseconds, which is libgomp's default,
/// but only for microseconds while the machine has other work for their cores. Does nothing without
/// libgomp, or where the kernel does not report how long threads wait for a core.
class SpinWatch {
 public:
  /// `threads`: the number of computing threads.
  explicit SpinWatch(int threads);
  SpinWatch(const SpinWatch&) = delete;
  SpinWatch& operator=(const SpinWatch&) = delete;
  ~SpinWatch();

 private:
  void run(int threads);

  std::binary_semaphore end_{0};
  std::thread thread_;
};

/// During its lifetime, libgomp has more threads than there are cores; therefore it lets all of
/// them sleep soon when they wait. How soon, the variables of `thread_wait: auto` say.
class Crowd {
 public:
  /// `threads`: the number of libgomp's computing threads, at most the number of cores. Throws
  /// Error when no more threads can be started.
  explicit Crowd(int threads);
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  ~Crowd();

 private:
  std::binary_semaphore end_{0};
  std::thread thread_;
};

}  // namespace stepop
