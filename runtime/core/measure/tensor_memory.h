#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>

namespace c10 {
class DebugInfoGuard;
}

namespace stepop {

/// Counts the memory of tensors during its lifetime: the memory that LibTorch's allocators give, on
/// the CPU and on GPUs, to the thread that made the counter, minus the memory that this thread
/// frees. Exact: every requested byte on the CPU, the allocator's rounded blocks on a GPU. Earlier
/// allocations, other threads, and the internal memory of libraries such as oneDNN are not counted.
///
/// The thread that made the counter must destroy it. If two exist, only the younger one counts.
class TensorMemory {
 public:
  TensorMemory();
  ~TensorMemory();
  TensorMemory(const TensorMemory&) = delete;
  TensorMemory& operator=(const TensorMemory&) = delete;

  /// Bytes on devices of this kind: the current number, and the highest so far.
  int64_t now(c10::DeviceType device) const;
  int64_t most(c10::DeviceType device) const;

  /// The highest number since the last call of `begin_part`.
  int64_t most_of_part(c10::DeviceType device) const;
  void begin_part();

 private:
  class Counter;

  std::shared_ptr<Counter> counter_;
  std::unique_ptr<c10::DebugInfoGuard> guard_;
};

}  // namespace stepop
