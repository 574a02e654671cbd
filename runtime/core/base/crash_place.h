#pragma once

#include <time.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace stepop {

/// The op of the user's code that is running, and its examples: for the message of a crash, whose
/// signal handler can only look at existing data.
struct CrashPlace {
  std::atomic<const std::string*> op = nullptr;                 ///< `train_op`
  std::atomic<const std::vector<int64_t>*> examples = nullptr;  ///< Indices in the dataset.
  /// `seconds_in_handler` when the op began.
  std::atomic<int64_t> begin_seconds = 0;
};

inline CrashPlace crash_place;

/// Seconds of a clock that only grows. May be called in a signal handler.
inline int64_t seconds_in_handler() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

/// Sets one member of the crash place during its lifetime.
template <class T>
class CrashPlaceGuard {
 public:
  CrashPlaceGuard(std::atomic<const T*>& part, const T& value)
      : part_(part), before_(part.exchange(&value, std::memory_order_relaxed)) {}
  ~CrashPlaceGuard() { part_.store(before_, std::memory_order_relaxed); }
  CrashPlaceGuard(const CrashPlaceGuard&) = delete;
  CrashPlaceGuard& operator=(const CrashPlaceGuard&) = delete;

 private:
  std::atomic<const T*>& part_;
  const T* before_;
};

}  // namespace stepop
