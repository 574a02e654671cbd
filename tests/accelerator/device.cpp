// What LibTorch asks of a device besides its operations: streams, events, generators, pinned
// memory.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/HPUHooksInterface.h>
#include <c10/core/Allocator.h>
#include <c10/core/GeneratorImpl.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "tests/accelerator/accelerator.h"
#include "tests/accelerator/generator.h"
#include "tests/accelerator/memory.h"
#include "tests/accelerator/streams.h"

namespace stepop::accelerator {
namespace {

const c10::Device kDevice(c10::kHPU, 0);

std::atomic<bool> are_streams_refused = false;

c10::Stream stream_of(c10::StreamId id) { return c10::Stream(c10::Stream::UNSAFE, kDevice, id); }

/// A point in the work of a stream.
struct Event {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_done = true;

  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return is_done; });
  }
};
using SharedEvent = std::shared_ptr<Event>;

SharedEvent& event_at(void* event) { return *static_cast<SharedEvent*>(event); }

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::kHPU; }
  c10::Device exchangeDevice(c10::Device /*device*/) const override { return kDevice; }
  c10::Device getDevice() const override { return kDevice; }
  void setDevice(c10::Device /*device*/) const override {}
  void uncheckedSetDevice(c10::Device /*device*/) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }

  c10::Stream getStream(c10::Device /*device*/) const override {
    return stream_of(current_stream());
  }
  c10::Stream getDefaultStream(c10::Device /*device*/) const override { return stream_of(0); }
  c10::Stream getStreamFromGlobalPool(c10::Device /*device*/, bool /*is_high*/) const override {
    if (are_streams_refused) {
      constexpr int kOutOfMemory = 2;  // cudaErrorMemoryAllocation
      throw c10::AcceleratorError({__func__, __FILE__, __LINE__}, kOutOfMemory,
                                  "HPU error: out of memory");
    }
    return stream_of(next_stream());
  }
  c10::Stream getNewStream(c10::Device /*device*/, int /*priority*/) const override {
    return stream_of(next_stream());
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return stream_of(exchange_stream(stream.id()));
  }
  bool queryStream(const c10::Stream& stream) const override { return is_idle(stream.id()); }
  void synchronizeStream(const c10::Stream& stream) const override {
    count_wait("stream");
    drain(stream.id());
  }
  void synchronizeDevice(c10::DeviceIndex /*device*/) const override {
    count_wait("device");
    drain_all();
  }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex /*device*/,
              const c10::EventFlag /*flag*/) const override {
    if (*event == nullptr) *event = new SharedEvent(std::make_shared<Event>());
    // What waits for an earlier record goes on waiting for that one.
    SharedEvent& shared = event_at(*event);
    shared = std::make_shared<Event>();
    shared->is_done = false;
    enqueue(stream.id(), [event = shared] {
      const std::lock_guard guard(event->mutex);
      event->is_done = true;
      event->changed.notify_all();
    });
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event == nullptr) return;
    enqueue(stream.id(), [event = event_at(event)] { event->wait(); });
  }
  bool queryEvent(void* event) const override {
    if (event == nullptr) return true;
    const std::lock_guard guard(event_at(event)->mutex);
    return event_at(event)->is_done;
  }
  void synchronizeEvent(void* event) const override {
    if (event == nullptr) return;
    count_wait("event");
    event_at(event)->wait();
  }
  void destroyEvent(void* event, const c10::DeviceIndex /*device*/) const noexcept override {
    delete static_cast<SharedEvent*>(event);
  }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    record_stream(data.get(), stream.id());
  }
};

C10_REGISTER_GUARD_IMPL(HPU, Guard);

/// LibTorch finds it by this name.
struct HPUHooks final : at::HPUHooksInterface {
  explicit HPUHooks(at::HPUHooksArgs /*unused*/) {}
  bool hasHPU() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex /*device*/) const override { return true; }
  void init() const override {}
  c10::DeviceIndex deviceCount() const override { return 1; }
  void setCurrentDevice(c10::DeviceIndex /*device*/) const override {}
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex /*device*/) const override { return 0; }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex /*device*/) const override { return 0; }
  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_memory(); }
  c10::Device getDeviceFromPtr(void* /*data*/) const override { return kDevice; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex /*device*/) const override {
    return default_generator();
  }
  at::Generator getNewGenerator(c10::DeviceIndex /*device*/) const override {
    return at::make_generator<DeviceGenerator>();
  }
};

using at::HPUHooksInterface;
using at::HPUHooksRegistry;
using at::RegistererHPUHooksRegistry;
REGISTER_HPU_HOOKS(HPUHooks);

}  // namespace

void refuse_streams(bool are_refused) { are_streams_refused = are_refused; }

void load() {
  static const bool is_loaded = [] {
    c10::SetAllocator(c10::kHPU, &device_memory());
    watch_faults();
    return true;
  }();
  (void)is_loaded;
}

/// Whoever loads this library has the device, also a program that does not know it.
[[maybe_unused]] static const bool kIsLoaded = (load(), true);

}  // namespace stepop::accelerator
