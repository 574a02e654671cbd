#include "tests/accelerator/messages.h"

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <ATen/core/stack.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/library.h>

#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/train/distributed/device_backend.h"
#include "runtime/train/distributed/meeting.h"
#include "tests/accelerator/accelerator.h"
#include "tests/accelerator/memory.h"
#include "tests/accelerator/streams.h"

namespace stepop::accelerator {
namespace {

const c10::Device kThis(c10::kHPU, 0);

c10::Stream present_stream() { return c10::impl::VirtualGuardImpl(c10::kHPU).getStream(kThis); }

/// An operation that has begun in `stream`.
class InStream final : public c10d::Work {
 public:
  InStream(c10::Stream stream, const std::vector<at::Tensor>& tensors)
      : future_(c10::make_intrusive<c10::ivalue::Future>(
            c10::ListType::create(c10::TensorType::get()), std::vector<c10::Device>{kThis})),
        end_(c10::kHPU) {
    end_.record(stream);
    const c10::StreamGuard guard(stream);
    future_->markCompleted(c10::IValue(tensors));  // what waits for it waits for the stream
  }

  bool isCompleted() override { return end_.query(); }
  bool wait(std::chrono::milliseconds /*timeout*/) override {
    end_.block(present_stream());
    return true;
  }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

 private:
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  c10::Event end_;
};

class Messages final : public c10d::Backend {
 public:
  using Tensors = std::vector<at::Tensor>;
  using Exchange = std::function<c10::intrusive_ptr<c10d::Work>(Tensors&)>;

  Messages(c10::intrusive_ptr<c10d::Backend> gloo, int rank, int size)
      : Backend(rank, size),
        gloo_(std::move(gloo)),
        stream_(c10::Stream::UNSAFE, kThis, next_stream()) {}
  ~Messages() override { drain(stream_.id()); }

  const std::string getBackendName() const override { return kMessages; }

  c10::intrusive_ptr<c10d::Work> allreduce(Tensors& tensors,
                                           const c10d::AllreduceOptions& options) override {
    return start(tensors,
                 [this, options](Tensors& host) { return gloo_->allreduce(host, options); });
  }
  c10::intrusive_ptr<c10d::Work> broadcast(Tensors& tensors,
                                           const c10d::BroadcastOptions& options) override {
    return start(tensors,
                 [this, options](Tensors& host) { return gloo_->broadcast(host, options); });
  }

 private:
  c10::intrusive_ptr<c10d::Work> start(const Tensors& tensors, const Exchange& exchange) {
    c10::Event before(c10::kHPU);
    before.record(present_stream());
    before.block(stream_);
    Tensors host;
    for (const at::Tensor& tensor : tensors) {
      TORCH_CHECK(tensor.is_contiguous() && tensor.device() == kThis,
                  "not a message of the device");
      record_stream(tensor.storage().mutable_data(), stream_.id());
      host.push_back(at::from_blob(reachable(tensor.const_data_ptr()), tensor.sizes(),
                                   tensor.options().device(at::kCPU)));
    }
    enqueue(stream_.id(), [host, exchange]() mutable {
      delay_copy();
      try {
        exchange(host)->wait();
      } catch (const std::exception&) {  // a process is gone
        for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
      }
    });
    return c10::make_intrusive<InStream>(stream_, tensors);
  }

  c10::intrusive_ptr<c10d::Backend> gloo_;
  c10::Stream stream_;
};

/// What c10d has for the CPU and CUDA.
void of_device(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  const size_t count = operation.schema().arguments().size();
  const std::vector<c10::IValue> arguments = torch::jit::pop(*stack, count);
  std::vector<at::Tensor> tensors = arguments[0].toTensorVector();
  const auto backend =
      arguments[1].toCustomClass<c10d::ProcessGroup>()->getBackend(c10::DeviceType::HPU);
  c10::intrusive_ptr<c10d::Work> work;
  if (operation.schema().name() == "c10d::allreduce_") {
    c10d::AllreduceOptions options;
    options.reduceOp = *arguments[2].toCustomClass<c10d::ReduceOp>();
    work = backend->allreduce(tensors, options);
  } else {
    c10d::BroadcastOptions options;
    options.rootRank = arguments[2].toInt();
    work = backend->broadcast(tensors, options);
  }
  stack->emplace_back(tensors);
  stack->emplace_back(work);
}

TORCH_LIBRARY_IMPL(c10d, HPU, library) {
  for (const char* name : {"allreduce_", "broadcast_"}) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&of_device>());
  }
}

[[maybe_unused]] const bool is_registered = [] {
  device_backends()[kMessages] = {
      .device = c10::kHPU,
      .type = c10d::ProcessGroup::BackendType::CUSTOM,
      .connect =
          [](const c10::intrusive_ptr<c10d::Store>& store, const Place& place, c10::Device) {
            return DeviceBackend::Pointer(
                c10::make_intrusive<Messages>(connect_gloo(place, store), place.rank, place.size));
          },
      // Each process has a device of its own, but where a test says otherwise.
      .identity =
          [](c10::Device) {
            const char* shared = std::getenv("STEPOP_ACCELERATOR_IDENTITY");
            return shared != nullptr ? std::string(shared) : std::to_string(::getpid());
          }};
  return true;
}();

}  // namespace
}  // namespace stepop::accelerator
