#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <string>
#include <vector>

#include "runtime/core/measure/tensor_memory.h"

namespace stepop {

/// The cost of the parts of a step: the median of their times over some rounds, and their memory on
/// the device in the last round.
class OpMeasurements {
 public:
  /// `memory` must outlive this.
  OpMeasurements(TensorMemory& memory, const c10::Device& device)
      : memory_(memory), device_(device) {}

  /// Runs `call` and returns its result. On a GPU, the time ends when the GPU has finished.
  template <class Call>
  auto measure(const std::string& name, const Call& call) {
    const Measurement measurement(*this, name);
    return call();
  }

  /// Begins a round; returns false after enough rounds: five, or two that took seconds.
  bool begin_round();

  /// A table with one row for each part, in the order of their first runs.
  std::string table() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Part {
    std::string name;
    std::vector<double> seconds;  ///< By round.
    int64_t most_bytes = 0;       ///< The most bytes at once, without earlier allocations.
    int64_t left_bytes = 0;       ///< Bytes added by the part; negative if it freed memory.
  };

  class Measurement {
   public:
    Measurement(OpMeasurements& all, const std::string& name);
    ~Measurement();
    Measurement(const Measurement&) = delete;
    Measurement& operator=(const Measurement&) = delete;

   private:
    OpMeasurements& all_;
    Part& part_;
    int64_t bytes_before_;
    Clock::time_point begin_;
  };

  Part& part(const std::string& name);

  TensorMemory& memory_;
  c10::Device device_;
  std::vector<Part> parts_;
  size_t rounds_ = 0;
  Clock::time_point first_round_;
};

}  // namespace stepop
