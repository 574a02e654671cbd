#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "runtime/core/base/interrupt.h"
#include "runtime/train/distributed/place.h"

namespace stepop {

/// Rank 0, which keeps the store, waits so long for the others to read in it why all end.
inline constexpr std::chrono::milliseconds kHeardWithin{1500};

/// The processes that train together have found each other.
struct Meeting {
  c10::intrusive_ptr<c10d::Store> store;
  /// A second connection, for another thread: a store serves one at a time.
  c10::intrusive_ptr<c10d::Store> watch_store;
  c10::intrusive_ptr<c10d::ProcessGroup> group;  ///< Without a time limit of its own.
  std::vector<std::string> names;                ///< By rank: `rank 1 on node7, process 123`.
};

/// Waits for all of them, at most five minutes. Throws Error as World::join, and what `interrupt`
/// throws meanwhile.
Meeting meet(const Place& place, const InterruptCheck& interrupt);

}  // namespace stepop
