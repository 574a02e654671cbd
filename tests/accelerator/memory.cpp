#include "tests/accelerator/memory.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "tests/accelerator/accelerator.h"
#include "tests/accelerator/graph.h"
#include "tests/accelerator/streams.h"

namespace stepop::accelerator {
namespace {

std::atomic<int64_t> emptied_caches = 0;

/// Addresses; pages are taken as they are written.
constexpr size_t kArenaBytes = size_t{1} << 33;
constexpr size_t kBlock = 512;

struct sigaction before;

/// Says that the host touched memory of the device; any other fault goes to the handler before.
void on_fault(int signal, siginfo_t* info, void* context);

/// One file in memory, mapped twice: where the host may not touch it, and where the device does.
class Arena {
 public:
  Arena() {
    const int file = ::memfd_create("accelerator", MFD_CLOEXEC);
    TORCH_CHECK(file >= 0 && ::ftruncate(file, kArenaBytes) == 0, "no memory for the accelerator");
    if (const char* limit = std::getenv(kByteLimit)) limit_ = std::atoll(limit);
    device_ = map(file, PROT_NONE);
    host_ = map(file, PROT_READ | PROT_WRITE);
    ::close(file);
  }

  bool contains(const void* address) const {
    const auto* byte = static_cast<const char*>(address);
    return byte >= device_ && byte < device_ + kArenaBytes;
  }

  void* reachable(const void* address) const {
    return host_ + (static_cast<const char*>(address) - device_);
  }

  void* allocate(size_t bytes) {
    const size_t size = std::max((bytes + kBlock - 1) / kBlock, size_t{1}) * kBlock;
    const std::lock_guard guard(mutex_);
    const int64_t taken = taken_ + static_cast<int64_t>(size);
    TORCH_CHECK_WITH(OutOfMemoryError, limit_ == 0 || taken <= limit_,
                     "accelerator out of memory. Tried to allocate ", size, " bytes");
    taken_ = taken;
    most_ = std::max(most_, taken_);
    char* address = nullptr;
    if (auto& free = free_[size]; !free.empty()) {
      address = free.back();
      free.pop_back();
    } else {
      TORCH_CHECK(end_ + size <= kArenaBytes, "the accelerator has no addresses left");
      address = device_ + end_;
      end_ += size;
    }
    blocks_[address] = {size, {current_stream()}};
    return address;
  }

  void free(void* address) {
    std::vector<c10::StreamId> busy;
    {
      const std::lock_guard guard(mutex_);
      const Block& block = blocks_.at(static_cast<char*>(address));
      taken_ -= static_cast<int64_t>(block.bytes);
      for (const c10::StreamId stream : block.streams) {
        if (!is_idle(stream)) busy.push_back(stream);
      }
    }
    // As with CUDA, what the streams of a block have still to do comes before its next owner.
    if (busy.empty()) return release(address);
    const auto left = std::make_shared<std::atomic<size_t>>(busy.size());
    for (const c10::StreamId stream : busy) {
      enqueue(stream, [this, left, address] {
        if (--*left == 0) release(address);
      });
    }
  }

  /// The block is used by this stream as well.
  void record(void* address, c10::StreamId stream) {
    const std::lock_guard guard(mutex_);
    blocks_.at(static_cast<char*>(address)).streams.insert(stream);
  }

  int64_t taken() {
    const std::lock_guard guard(mutex_);
    return taken_;
  }
  int64_t most() {
    const std::lock_guard guard(mutex_);
    return most_;
  }
  void reset_most() {
    const std::lock_guard guard(mutex_);
    most_ = taken_;
  }
  void set_limit(int64_t bytes) {
    const std::lock_guard guard(mutex_);
    limit_ = bytes;
  }

 private:
  struct Block {
    size_t bytes = 0;
    std::set<c10::StreamId> streams = {};
  };

  void release(void* address) {
    const std::lock_guard guard(mutex_);
    const auto found = blocks_.find(static_cast<char*>(address));
    // Whoever reads freed memory finds NaN.
    std::memset(reachable(address), 0xff, found->second.bytes);
    free_[found->second.bytes].push_back(found->first);
    blocks_.erase(found);
  }

  static char* map(int file, int protection) {
    void* address = ::mmap(nullptr, kArenaBytes, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
    TORCH_CHECK(address != MAP_FAILED, "no addresses for the accelerator");
    return static_cast<char*>(address);
  }

  std::mutex mutex_;
  char* device_ = nullptr;
  char* host_ = nullptr;
  size_t end_ = 0;
  std::map<size_t, std::vector<char*>> free_;
  std::map<char*, Block> blocks_;
  int64_t taken_ = 0;
  int64_t most_ = 0;
  int64_t limit_ = 0;
};

Arena& arena() {
  static Arena& made = *new Arena;  // tensors may outlive all statics
  return made;
}

void on_fault(int signal, siginfo_t* info, void* context) {
  if (arena().contains(info->si_addr)) {
    constexpr char kText[] = "the host touched memory of the accelerator outside of a copy\n";
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kText, sizeof(kText) - 1);
    ::signal(SIGSEGV, SIG_DFL);
    return;  // faults again, and ends the process
  }
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(signal, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
    return before.sa_handler(signal);
  ::sigaction(SIGSEGV, &before, nullptr);
}

}  // namespace

void watch_faults() {
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  struct sigaction found = {};
  ::sigaction(SIGSEGV, &action, &found);
  if (found.sa_sigaction != on_fault) before = found;
}

namespace {

void free_device(void* address) { arena().free(address); }

class DeviceMemory : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device device(c10::kHPU, 0);
    if (bytes == 0) return {nullptr, device};
    void* address = arena().allocate(bytes);
    if (is_capturing()) note_of_capture(address, bytes);
    return {address, address, free_device, device};
  }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t /*pool*/) override { ++emptied_caches; }
  void recordStream(const c10::DataPtr& data, c10::Stream stream) override {
    record_stream(data.get(), stream.id());
  }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex /*device*/) override {
    c10::CachingDeviceAllocator::DeviceStats stats;
    auto& whole = stats.allocated_bytes.at(0);  // StatType::AGGREGATE
    whole.current = arena().taken();
    whole.peak = arena().most();
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex /*device*/) override {}
  void resetPeakStats(c10::DeviceIndex /*device*/) override { arena().reset_most(); }
  c10::DeleterFnPtr raw_deleter() const override { return free_device; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(stepop::accelerator::reachable(to), stepop::accelerator::reachable(from), bytes);
  }
};

std::mutex pinned_mutex;

/// The blocks of pinned memory: end by begin.
std::map<const char*, const char*>& pinned_blocks() {
  static auto& blocks = *new std::map<const char*, const char*>;
  return blocks;
}

void free_pinned(void* address) {
  {
    const std::lock_guard guard(pinned_mutex);
    pinned_blocks().erase(static_cast<const char*>(address));
  }
  std::free(address);
}

class PinnedMemory : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* address = std::aligned_alloc(64, (std::max(bytes, size_t{1}) + 63) / 64 * 64);
    TORCH_CHECK_WITH(OutOfMemoryError, address != nullptr, "no memory to be pinned");
    const std::lock_guard guard(pinned_mutex);
    const auto* begin = static_cast<const char*>(address);
    pinned_blocks()[begin] = begin + std::max(bytes, size_t{1});
    return {address, address, free_pinned, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return free_pinned; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
};

}  // namespace

c10::Allocator& device_memory() {
  static auto& memory = *new DeviceMemory;
  return memory;
}

int64_t take_emptied_caches() { return emptied_caches.exchange(0); }

void record_stream(void* address, c10::StreamId stream) {
  if (address != nullptr) arena().record(address, stream);
}

void* reachable(const void* address) {
  if (address == nullptr) return nullptr;
  return arena().contains(address) ? arena().reachable(address) : const_cast<void*>(address);
}

c10::Allocator& pinned_memory() {
  static auto& memory = *new PinnedMemory;
  return memory;
}

bool is_pinned(const void* address) {
  const std::lock_guard guard(pinned_mutex);
  const auto* byte = static_cast<const char*>(address);
  const auto after = pinned_blocks().upper_bound(byte);
  return after != pinned_blocks().begin() && byte < std::prev(after)->second;
}

int64_t bytes() { return arena().taken(); }
int64_t most_bytes() { return arena().most(); }
void reset_most_bytes() { arena().reset_most(); }
void set_byte_limit(int64_t bytes) { arena().set_limit(bytes); }

}  // namespace stepop::accelerator
