// Operations between devices: the host does not wait for them, so the watch does.

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <algorithm>
#include <exception>
#include <future>
#include <utility>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "runtime/core/base/error.h"
#include "runtime/train/distributed/device_backend.h"
#include "runtime/train/distributed/link.h"
#include "runtime/train/distributed/meeting.h"

namespace stepop {
namespace {

struct Connected {
  DeviceBackend::Pointer devices;
  DeviceBackend::Pointer hosts;
};

c10::intrusive_ptr<c10d::Store> part_of(const c10::intrusive_ptr<c10d::Store>& store,
                                        const char* name) {
  return c10::make_intrusive<c10d::PrefixStore>(name, store->clone());
}

/// Connects, and sums once: NCCL opens its connections with the first operation.
Connected connected(const DeviceBackend& backend, const c10::intrusive_ptr<c10d::Store>& store,
                    const Place& place, c10::Device device) {
  const c10::DeviceGuard guard(device);
  Connected made{.devices = backend.connect(part_of(store, "devices"), place, device),
                 .hosts = connect_gloo(place, part_of(store, "hosts"))};
  std::vector<at::Tensor> ones{at::ones({1}, at::TensorOptions(device).dtype(at::kFloat))};
  made.devices->allreduce(ones)->wait();
  if (ones[0].item<float>() == static_cast<float>(place.size)) return made;
  throw Error(fmt::format("a sum over {} processes was {}", place.size, ones[0].item<float>()));
}

}  // namespace

void Link::connect_devices(const std::string& name, c10::Device device) {
  if (stays_on(device)) return;  // since an earlier start of this process
  // In a thread of its own, which is left behind where a process is missing: such a connection
  // waits until this process ends, while the training reports who is missing.
  auto promise = std::make_shared<std::promise<Connected>>();
  std::future<Connected> future = promise->get_future();
  const auto waiting = begin_wait();
  std::thread([promise, backend = device_backends().at(name), store = store_->clone(),
               place = place_, device] {
    try {
      promise->set_value(connected(backend, store, place, device));
    } catch (const std::exception&) {
      promise->set_exception(std::current_exception());
    }
  }).detach();
  while (future.wait_for(std::chrono::milliseconds(5)) != std::future_status::ready) {
    if (failure()) throw peer_error("");
  }
  end_wait(waiting);
  try {
    Connected made = future.get();
    group_->setBackend(device.type(), device_backends().at(name).type, made.devices);
    hosts_ = std::move(made.hosts);
  } catch (const std::exception& error) {
    throw Error(fmt::format("distributed/backend: {} cannot connect the devices: {}", name,
                            reason_of(error)));
  }
  device_type_ = device.type();
  if (place_.rank == 0) final_gather_ = final_gather();
}

/// The last operation over `hosts_`: rank 0 begins it now, the others when they end. A process that
/// is killed breaks it at once, where nothing else does as long as the host waits for its device.
c10::intrusive_ptr<c10d::Work> Link::final_gather() {
  std::vector<at::Tensor> input{at::empty({1}, at::TensorOptions(at::kByte))};
  std::vector<std::vector<at::Tensor>> output;
  if (place_.rank == 0) {
    output.emplace_back();
    for (int i = 0; i < place_.size; ++i) output[0].push_back(at::empty_like(input[0]));
  }
  return hosts_->gather(output, input);
}

bool Link::stays_on(const at::Tensor& tensor) const {
  return stays_on(tensor.device()) && is_device_type(tensor.scalar_type());
}

void Link::follow(const c10::intrusive_ptr<c10d::Work>& work) {
  if (failure()) throw peer_error("");
  started_.fetch_add(1, std::memory_order_relaxed);
  // The operation itself would keep its tensors. The callback runs in a stream behind it.
  work->getFuture()->addCallback([this](c10::ivalue::Future& done) {
    const c10::impl::VirtualGuardImpl device(*device_type_);
    auto end = std::make_unique<c10::Event>(*device_type_);
    end->record(device.getStream(done.devices().at(0)));
    const std::lock_guard lock(mutex_);
    on_device_.push_back({.begin = Clock::now(), .end = std::move(end)});
  });
}

void Link::wait_on_device(const c10::intrusive_ptr<c10d::Work>& work) {
  follow(work);
  work->wait();
}

/// The time since which no operation on the device has ended; nothing when none is running.
std::optional<Link::Clock::time_point> Link::stuck_since() {
  const std::lock_guard lock(mutex_);
  try {
    while (!on_device_.empty() && on_device_.front().end->query()) {
      on_device_.pop_front();
      device_moved_ = Clock::now();
    }
  } catch (const std::exception&) {  // an error of the device, which the training meets itself
    on_device_.clear();
  }
  if (on_device_.empty()) return std::nullopt;
  return std::max(on_device_.front().begin, device_moved_);
}

/// In rank 0: reports the processes that ended without calling `final_gather`.
void Link::check_final_gather() {
  if (!final_gather_ || !final_gather_->isCompleted() || !final_gather_->exception()) return;
  const auto now = Clock::now();
  if (!broken_at_) broken_at_ = now;
  if (now - *broken_at_ < kReasonWithin) return;  // a process that fails reports why
  std::vector<std::string> silent;
  {
    const std::lock_guard lock(mutex_);
    for (size_t rank = 1; rank < others_.size(); ++rank) {
      if (now - others_[rank].since > kReasonWithin / 2) silent.push_back(names_[rank]);
    }
  }
  watch_store_->compareSet(kFailureKey, {}, bytes_of(to_text({.text = gone_text(silent, "")})));
}

}  // namespace stepop
