// Messages that stay on the device, against the sums of processes on CPUs. Each test forks before
// it uses the device: the processes have a device of their own.
#include "tests/accelerator/messages.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tanh.h>
#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "runtime/train/distributed/gradient_sum.h"
#include "runtime/train/distributed/world.h"
#include "tests/accelerator/accelerator.h"
#include "tests/runtime/train/distributed/together.h"

namespace stepop::accelerator {
namespace messages_test {

using Texts = std::vector<std::string>;
const c10::Device kDevice(c10::kHPU, 0);

/// Processes whose devices are connected, and whose copies and messages take 20 ms.
Texts on_devices(int size, const std::function<std::string(World&)>& work) {
  return together(size, [&](World& world) {
    const std::string wrong = world.use_backend(kMessages, kDevice);
    if (!wrong.empty()) return wrong;
    set_copy_delay(20'000);
    take_waits();
    return work(world);
  });
}

/// How often the host waited since the last call.
std::string waited() {
  std::string text;
  for (const auto& [reason, count] : take_waits()) text += fmt::format("{} {} ", reason, count);
  return text;
}

TEST_CASE(
    "a sum, a maximum and a broadcast of a device are behind its work, and the host waits "
    "for none") {
  CHECK(on_devices(3, [](World& world) {
          const double rank = world.rank();
          const at::Tensor pinned = at::full({1000}, rank + 1, at::kFloat).pin_memory();
          const at::Tensor sum = pinned.to(kDevice, /*non_blocking=*/true);
          world.sum(sum);
          const at::Tensor twice = sum * 2;
          const at::Tensor most = at::full({3}, rank, at::TensorOptions(kDevice).dtype(at::kLong));
          world.max(most);
          const at::Tensor first = at::full({5}, rank, at::TensorOptions(kDevice));
          world.broadcast(first, 2);
          std::string text = waited();
          const auto is = [](const at::Tensor& tensor, double value) {
            return (tensor.cpu() == value).all().item<bool>();
          };
          if (!is(sum, 6) || !is(twice, 12) || !is(most, 2) || !is(first, 2)) text += "wrong";
          return text;
        }) == Texts(3));
}

TEST_CASE("a type that the backend has not goes by way of the host") {
  CHECK(on_devices(2, [](World& world) {
          const at::Tensor flags =
              at::full({3}, world.rank(), at::TensorOptions(kDevice).dtype(at::kChar));
          world.broadcast(flags, 1);
          return std::string((flags.cpu() == 1).all().item<bool>() ? "" : "wrong");
        }) == Texts(2));
}

/// Two layers whose gradients need several messages, and a parameter that rank 1 alone uses.
struct Layers {
  at::Tensor first;
  at::Tensor second;
  at::Tensor one;

  explicit Layers(c10::Device device) {
    const auto made = [&](at::IntArrayRef sizes) {
      return (at::arange(sizes[0] * sizes[1], at::kFloat).view(sizes).sin() * 0.01)
          .to(device)
          .requires_grad_();
    };
    first = made({600, 700});
    second = made({700, 500});
    one = made({1, 500});
  }
  std::vector<at::Tensor> list() const { return {first, second, one}; }

  at::Tensor loss(int rank, int step) const {
    const at::Tensor input = (at::arange(8 * 600, at::kFloat).view({8, 600}) * (rank + 1) + step)
                                 .cos()
                                 .to(first.device());
    at::Tensor output = at::tanh(input.matmul(first)).matmul(second);
    if (rank == 1) output = output + one;
    return output.square().sum();
  }
};

/// The bytes of the gradients after each of three updates by hand, of sums while they are computed
/// (`overlaps`) or afterwards.
std::string trained(World& world, c10::Device device, bool overlaps) {
  const Layers layers(device);
  GradientSum sum(world, layers.list());
  std::string bytes;
  std::string wrong;
  for (int step = 0; step < 3; ++step) {
    const at::Tensor loss = layers.loss(world.rank(), step);
    take_waits();
    if (overlaps) {
      sum.overlap(loss, [&] { loss.backward(); });
    } else {
      loss.backward();
      sum.sum();
    }
    // The host's waits: none after the backward pass. c10d's Reducer copies its flags of used
    // parameters to the device, and back where this process did not use one (CUDA's it pins).
    const std::string waits = waited();
    const std::string most =
        world.rank() == 0 ? "copy from host 1 copy to host 1 " : "copy from host 1 ";
    if (!device.is_cpu() && waits != (overlaps ? most : "")) wrong += waits + "; ";
    const at::NoGradGuard no_grad;
    for (const at::Tensor& parameter : layers.list()) {
      parameter.sub_(parameter.grad() * 0.001);  // without a wait of the host
      const at::Tensor host = parameter.detach().cpu();
      bytes.append(static_cast<const char*>(host.const_data_ptr()), host.nbytes());
      parameter.mutable_grad().reset();
    }
  }
  return wrong + std::to_string(std::hash<std::string>()(bytes));
}

TEST_CASE(
    "sums of gradients that stay on the device, beside the backward pass too, have the bits of "
    "CPUs") {
  for (const bool overlaps : {true, false}) {
    CAPTURE(overlaps);
    const auto expected =
        together(2, [&](World& world) { return trained(world, at::kCPU, overlaps); });
    REQUIRE(expected[0].find_first_not_of("0123456789") == std::string::npos);
    CHECK(expected[0] == expected[1]);
    CHECK(on_devices(2, [&](World& world) {
            const bool does = GradientSum(world, Layers(kDevice).list()).overlaps();
            return does ? trained(world, kDevice, overlaps) : "nothing overlaps";
          }) == expected);
  }
}

TEST_CASE("a process that is late for a sum of devices is named, with its step") {
  const Texts texts = on_devices(2, [](World& world) {
    world.set_step(41);
    const at::Tensor tensor = at::full({1}, 1.0, at::TensorOptions(kDevice));
    world.sum(tensor);
    tensor.cpu();
    world.set_time_limit(2);
    if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(6));
    world.sum(tensor);
    tensor.cpu();  // rank 0 never comes back from here
    return std::string("nothing");
  });
  CHECK(texts[0] == "exit code 1");
  CAPTURE(texts[1]);
  CHECK(texts[1].find(" seconds for: rank 1 on ") != std::string::npos);
  CHECK(texts[1].find(", in step 42. It hangs") != std::string::npos);
}

TEST_CASE("a process that is killed ends those that wait for it with their devices") {
  for (const int killed : {0, 2}) {
    CAPTURE(killed);
    const Texts texts = on_devices(3, [&](World& world) {
      const at::Tensor tensor = at::full({1}, 1.0, at::TensorOptions(kDevice));
      world.sum(tensor);
      tensor.cpu();
      if (world.rank() == killed) ::raise(SIGKILL);
      world.sum(tensor);
      tensor.cpu();
      return std::string("nothing");
    });
    for (int rank = 0; rank < 3; ++rank) {
      CHECK(texts[static_cast<size_t>(rank)] == (rank == killed ? "signal 9" : "exit code 1"));
    }
  }
}

TEST_CASE("a backend for another device, and two processes on one device, are refused") {
  const Texts none = together(2, [](World& world) { return world.use_backend("none", kDevice); });
  CHECK(none[0] == "expected gloo or nccl, found \"none\"");
  const Texts other =
      together(2, [](World& world) { return world.use_backend(kMessages, at::kCPU); });
  CHECK(other[1] == "messages carries tensors of hpu, and the device is cpu; use gloo");
  const Texts shared = together(2, [](World& world) {
    ::setenv("STEPOP_ACCELERATOR_IDENTITY", "one", 1);
    return world.use_backend(kMessages, kDevice);
  });
  for (const std::string& text : shared) {
    CAPTURE(text);
    CHECK(text.starts_with("messages needs a device for each process, and rank 0 on "));
    CHECK(
        text.ends_with(" have the same; start as many processes as there are devices, or use "
                       "gloo"));
  }
}

}  // namespace messages_test
}  // namespace stepop::accelerator
