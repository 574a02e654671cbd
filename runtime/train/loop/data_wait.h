#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace stepop {

/// Checks every minute whether a training spends most of its time waiting for its data.
class DataWait {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::duration kEvery = std::chrono::minutes(1);

  /// `workers`: the loader's threads, `n_data_processes`.
  explicit DataWait(int64_t workers, Clock::time_point now = Clock::now());

  /// Adds time in which the loop waited for examples.
  void add(Clock::duration time) { waited_ += time; }

  /// Called after each step; most calls only compare the time. Returns a warning with advice the
  /// first time that more than half of a minute was waiting, and an empty text ever after.
  std::string look(Clock::time_point now = Clock::now());

 private:
  int64_t workers_;
  Clock::time_point begin_;
  Clock::duration waited_{0};
  bool is_over_ = false;
};

}  // namespace stepop
