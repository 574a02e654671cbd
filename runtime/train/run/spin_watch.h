#pragma once

#include <semaphore>
#include <thread>

namespace stepop {

/// Whether threads that wait for each other may spin: keep looking for their next work, and a core
/// busy with it. Spinning makes short steps up to twice as fast on cores that nothing else wants,
/// and many times slower on others, where they spin on the very cores that are waited for.
class SpinPolicy {
 public:
  /// `threads`: how many of them there are.
  explicit SpinPolicy(int threads);

  /// Takes note of some time, in seconds, and for how long threads of this process were ready to
  /// run in it and had no core, all of them together. Returns whether they may spin from now on.
  bool note(double elapsed, double waited);

 private:
  double much_;    ///< As a share of the time: others want the cores.
  double little_;  ///< They do not.
  double needed_;  ///< Seconds of `quiet_` before spinning begins again.
  double quiet_ = 0;
  double spun_ = 0;  ///< Seconds since spinning began.
  bool spins_ = true;
};

/// While there is one, OpenMP's threads spin for some milliseconds, as libgomp has it by itself,
/// but only for microseconds while the machine has other work for their cores. Without libgomp, or
/// where the kernel does not say how long threads wait for a core, it does nothing.
class SpinWatch {
 public:
  /// `threads`: how many compute.
  explicit SpinWatch(int threads);
  SpinWatch(const SpinWatch&) = delete;
  SpinWatch& operator=(const SpinWatch&) = delete;
  ~SpinWatch();

 private:
  void run(int threads);

  std::binary_semaphore end_{0};
  std::thread thread_;
};

/// As long as there is one, libgomp has more threads than there are cores, and for that has all of
/// them sleep soon when they wait.
class Crowd {
 public:
  /// `threads`: how many of libgomp's compute, of which there may be as many as cores. Throws Error
  /// when no more threads can be started.
  explicit Crowd(int threads);
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  ~Crowd();

 private:
  std::binary_semaphore end_{0};
  std::thread thread_;
};

}  // namespace stepop
