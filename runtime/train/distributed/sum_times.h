#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "runtime/core/measure/profile.h"

namespace stepop {

/// The start and end times of the sums of one backward pass, for a profile.
class SumTimes {
 public:
  /// With null nothing is measured.
  void begin_pass(Profile* profile) { profile_ = profile; }

  /// Adds a sum that has begun. From the last sum on, the training loop waits.
  void add(const c10::intrusive_ptr<c10d::Work>& sum, Profile::Clock::time_point begin,
           size_t bytes, bool is_last);

  /// Called when all sums are complete: records them in the profile.
  void end_pass();

 private:
  struct Sum {
    Profile::Clock::time_point begin;
    std::shared_ptr<std::atomic<Profile::Clock::time_point>> end;  ///< Written by a thread of c10d.
    size_t bytes;
  };

  Profile* profile_ = nullptr;
  std::vector<Sum> sums_;
  std::optional<Span> waiting_;
};

}  // namespace stepop
