#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "runtime/core/measure/profile.h"

namespace stepop {

/// When the sums of one backward pass began and ended, for a profile.
class SumTimes {
 public:
  /// Null: nothing is measured.
  void begin_pass(Profile* profile) { profile_ = profile; }

  /// A sum began; the last one is what the training loop waits for from here on.
  void add(const c10::intrusive_ptr<c10d::Work>& sum, Profile::Clock::time_point begin,
           size_t bytes, bool is_last);

  /// All are over: tells the profile.
  void end_pass();

 private:
  struct Sum {
    Profile::Clock::time_point begin;
    std::shared_ptr<std::atomic<Profile::Clock::time_point>>
        end;  ///< A thread of c10d's writes it.
    size_t bytes;
  };

  Profile* profile_ = nullptr;
  std::vector<Sum> sums_;
  std::optional<Span> waiting_;
};

}  // namespace stepop
