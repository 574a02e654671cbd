#include "runtime/core/measure/tensor_memory.h"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <array>
#include <mutex>

namespace stepop {

/// LibTorch's allocators report to this counter. A GPU's backward passes run in their own threads,
/// which inherit the counter.
class TensorMemory::Counter : public c10::MemoryReportingInfoBase {
 public:
  struct Bytes {
    int64_t now = 0;
    int64_t most = 0;
    int64_t most_of_part = 0;
  };

  bool memoryProfilingEnabled() const override { return true; }

  /// `size` is negative for freed memory.
  void reportMemoryUsage(void*, int64_t size, size_t, size_t, c10::Device device) override {
    const std::lock_guard lock(mutex_);
    Bytes& bytes = of(device.type());
    bytes.now += size;
    bytes.most = std::max(bytes.most, bytes.now);
    bytes.most_of_part = std::max(bytes.most_of_part, bytes.now);
  }

  Bytes read(c10::DeviceType device) {
    const std::lock_guard lock(mutex_);
    return of(device);
  }

  void begin_part() {
    const std::lock_guard lock(mutex_);
    for (auto& bytes : bytes_) bytes.most_of_part = bytes.now;
  }

 private:
  Bytes& of(c10::DeviceType device) { return bytes_.at(static_cast<size_t>(device)); }

  std::mutex mutex_;
  std::array<Bytes, c10::COMPILE_TIME_MAX_DEVICE_TYPES> bytes_;
};

TensorMemory::TensorMemory()
    : counter_(std::make_shared<Counter>()),
      guard_(std::make_unique<c10::DebugInfoGuard>(c10::DebugInfoKind::PROFILER_STATE, counter_)) {}

TensorMemory::~TensorMemory() = default;

int64_t TensorMemory::now(c10::DeviceType device) const { return counter_->read(device).now; }

int64_t TensorMemory::most(c10::DeviceType device) const { return counter_->read(device).most; }

int64_t TensorMemory::most_of_part(c10::DeviceType device) const {
  return counter_->read(device).most_of_part;
}

void TensorMemory::begin_part() { counter_->begin_part(); }

}  // namespace stepop
