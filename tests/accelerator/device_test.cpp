// The device itself: its memory is apart, its copies run later, its waits are counted.
#include <ATen/TensorOperators.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <map>
#include <string>

#include "runtime/core/base/error.h"
#include "runtime/train/networks/generators.h"
#include "runtime/train/run/device.h"
#include "tests/accelerator/accelerator.h"
#include "tests/test_run.h"

namespace stepop::accelerator {
namespace device_test {

const at::Device kDevice(at::kHPU, 0);

at::Tensor pinned(const at::Tensor& tensor) { return tensor.pin_memory(); }

TEST_CASE("processes take the devices of a machine in turn, and a number is that device") {
  const auto device = [](const char* name, int rank) {
    return read_device(test_config(std::string("device: ") + name), rank);
  };
  CHECK(device("hpu", 0) == kDevice);
  CHECK(device("hpu", 3) == kDevice);  // there is one
  CHECK(device("hpu:0", 3) == kDevice);
  CHECK_THROWS_AS(device("hpu:1", 0), UsageError);
}

TEST_CASE("operations, gradients and views have the values of the CPU") {
  const at::Tensor x = at::rand({4, 3, 8, 8});
  const at::Tensor weight = at::rand({5, 3, 3, 3});
  const auto result = [&](const at::Device& device) {
    const at::Tensor input = x.to(device).set_requires_grad(true);
    const at::Tensor kernel = weight.to(device).set_requires_grad(true);
    const at::Tensor out = at::conv2d(input, kernel).transpose(1, 2).slice(1, 1, 5).relu();
    (out.square().mean(at::IntArrayRef{0, 1}).sum() + out.select(0, 2).std()).backward();
    return std::array{out.detach(), input.grad(), kernel.grad()};
  };
  const auto here = result(kDevice);
  const auto there = result(at::kCPU);
  for (size_t i = 0; i < here.size(); ++i) {
    CHECK(here[i].device() == kDevice);
    CHECK(here[i].cpu().equal(there[i]));
  }
  // In place, through a view.
  const at::Tensor base = at::zeros({3, 3}, kDevice);
  base[1].fill_(2);
  base.t()[0].add_(1);
  CHECK(base.sum().item<float>() == 9);
}

TEST_CASE("a touch of the host is a fault that says what it is") {
  const at::Tensor tensor = at::zeros({4}, kDevice);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    watch_faults();
    ::_exit(static_cast<int>(*static_cast<volatile float*>(tensor.data_ptr())));
  }
  ::close(ends[1]);
  std::string said;
  char bytes_read[256];
  for (ssize_t count; (count = ::read(ends[0], bytes_read, sizeof(bytes_read))) > 0;) {
    said.append(bytes_read, static_cast<size_t>(count));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
  CHECK(said.starts_with("the host touched memory of the accelerator outside of a copy\n"));
}

TEST_CASE(
    "a copy of pinned memory runs later, and what comes after it in its stream waits for it") {
  set_copy_delay(50'000);
  const at::Tensor source = pinned(at::ones({8}));
  const at::Tensor target = at::zeros({8}, kDevice);
  take_waits();
  target.copy_(source, /*non_blocking=*/true);
  CHECK(take_waits().empty());
  CHECK(take_copies_behind() == 1);
  source.fill_(3);  // too early: the copy has not read it
  CHECK(target.sum().item<float>() == 24);
  CHECK(take_waits() == std::map<std::string, int64_t>{{"item", 1}});

  // Another stream reads the buffer before it is written, unless it waits for an event.
  const c10::impl::VirtualGuardImpl guard(at::kHPU);
  const c10::Stream other = guard.getStreamFromGlobalPool(kDevice);
  source.fill_(5);
  target.copy_(source, true);
  {
    const c10::StreamGuard on_other(other);
    CHECK(target.sum().item<float>() == 24);
  }
  c10::Event event(at::kHPU);
  event.record(guard.getStream(kDevice));
  event.block(other);
  {
    const c10::StreamGuard on_other(other);
    CHECK(target.sum().item<float>() == 40);
  }
  set_copy_delay(0);
}

TEST_CASE("a copy to pinned memory is complete once its stream was waited for") {
  set_copy_delay(50'000);
  const at::Tensor source = at::ones({4}, kDevice);
  const at::Tensor target = pinned(at::zeros({4}));
  target.copy_(source, true);
  CHECK(target.sum().item<float>() == 0);
  c10::impl::VirtualGuardImpl(at::kHPU).getStream(kDevice).synchronize();
  CHECK(target.sum().item<float>() == 4);
  // Any other copy waits by itself.
  take_waits();
  CHECK(source.cpu().sum().item<float>() == 4);
  CHECK(take_waits() == std::map<std::string, int64_t>{{"copy to host", 1}});
  set_copy_delay(0);
}

TEST_CASE("freed memory holds NaN, and memory has a limit") {
  const int64_t before = bytes();
  void* address = nullptr;
  {
    const at::Tensor tensor = at::ones({1000}, kDevice);
    address = tensor.data_ptr();
    CHECK(bytes() == before + 4096);
  }
  CHECK(bytes() == before);
  const at::Tensor again = at::empty({1000}, kDevice);
  CHECK(again.data_ptr() == address);
  CHECK(again.isnan().all().item<bool>());
  set_byte_limit(before + 10'000);
  CHECK_THROWS_AS(at::empty({10'000}, kDevice), c10::OutOfMemoryError);
  set_byte_limit(0);
}

TEST_CASE("its random numbers are those of a CPU with the same seed, and come back with a state") {
  seed_generators(7, kDevice);
  const at::Tensor state = generator_state(kDevice);
  const at::Tensor here = at::rand({5}, kDevice);
  CHECK(here.cpu().equal(at::rand({5})));
  set_generator_state(kDevice, state);
  CHECK(at::rand({5}, kDevice).equal(here));
}

}  // namespace device_test
}  // namespace stepop::accelerator
