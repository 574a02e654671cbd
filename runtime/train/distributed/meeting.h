#pragma once

#include <chrono>
#include <exception>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "runtime/core/base/interrupt.h"
#include "runtime/train/distributed/place.h"

namespace stepop {

/// Rank 0, which keeps the store, waits this long for the others to read why all processes end.
inline constexpr std::chrono::milliseconds kHeardWithin{1500};

/// The connections of processes that have found each other.
struct Meeting {
  c10::intrusive_ptr<c10d::Store> store;
  /// A second connection for another thread, as a store serves one caller at a time.
  c10::intrusive_ptr<c10d::Store> watch_store;
  c10::intrusive_ptr<c10d::ProcessGroup> group;  ///< Without its own time limit.
  std::vector<std::string> names;                ///< By rank: `rank 1 on node7, process 123`.
};

/// Connects every process with every other process over the network: c10d's Gloo, without a time
/// limit.
c10::intrusive_ptr<c10d::Backend> connect_gloo(const Place& place,
                                               const c10::intrusive_ptr<c10d::Store>& store);

std::string own_host();

/// The first line of an error of c10d; the other lines are its stack.
std::string reason_of(const std::exception& error);

/// Waits at most five minutes for all processes. Throws Error like World::join, and whatever
/// `interrupt` throws meanwhile.
Meeting meet(const Place& place, const InterruptCheck& interrupt);

}  // namespace stepop
