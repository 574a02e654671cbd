#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>

namespace c10 {
class DebugInfoGuard;
}

namespace stepop {

/// Counts the memory of tensors while it lives: what LibTorch's allocators hand out, on the CPU and
/// on GPUs, to the thread that made this, and what that thread gives back. Exact: on the CPU every
/// byte that was asked for, on a GPU the blocks as its allocator rounds them up. Not counted is
/// what was allocated before or by other threads, and what libraries such as oneDNN take for
/// themselves.
///
/// Destroyed in the thread that made it. Of two that live at once only the younger one counts.
class TensorMemory {
 public:
  TensorMemory();
  ~TensorMemory();
  TensorMemory(const TensorMemory&) = delete;
  TensorMemory& operator=(const TensorMemory&) = delete;

  /// Bytes on the devices of this kind: what is there now, and the most that was there at once.
  int64_t now(c10::DeviceType device) const;
  int64_t most(c10::DeviceType device) const;

  /// The most that was there at once since the last call of `begin_part`.
  int64_t most_of_part(c10::DeviceType device) const;
  void begin_part();

 private:
  class Counter;

  std::shared_ptr<Counter> counter_;
  std::unique_ptr<c10::DebugInfoGuard> guard_;
};

}  // namespace stepop
