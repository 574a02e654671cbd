// Batch normalization over the batch of several processes, against one process that has it whole.

#include "runtime/train/networks/sync_batch_norm.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/instance_norm.h>
#include <ATen/ops/zeros_like.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/message_of.h"
#include "tests/runtime/train/distributed/together.h"

namespace stepop {
namespace sync_batch_norm_test {

struct Layer {
  at::Tensor weight = (at::arange(3, at::kFloat) / 4 + 0.75).requires_grad_();
  at::Tensor bias = (at::arange(3, at::kFloat) / 8).requires_grad_();
  at::Tensor mean = at::full({3}, 0.25F);
  at::Tensor variance = at::full({3}, 2.0F);
};
using Forward = std::function<at::Tensor(const at::Tensor& input, Layer& layer)>;

at::Tensor waves(const std::vector<int64_t>& shape, double frequency) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return (at::arange(count, at::kFloat) * frequency).sin().reshape(shape) * 1.5 + 0.5;
}

/// A step with a batch of this shape, of which each process has its share: its outputs and the
/// gradients of inputs and parameters of all, and what is left in the running statistics.
at::Tensor step(World& world, const Forward& forward, const std::vector<int64_t>& shape,
                bool is_synchronised = true) {
  const int64_t examples = shape[0];
  const int64_t begin = examples * world.rank() / world.size();
  const int64_t end = examples * (world.rank() + 1) / world.size();
  // Whoever has no example runs another.
  const StepClock clock{.counts = end > begin};
  const int64_t first = clock.counts ? begin : 0;
  const int64_t size = clock.counts ? end - begin : 1;
  SyncBatchNorm sync(world, clock);
  const SyncBatchNorm::Scope scope(is_synchronised ? &sync : nullptr);

  Layer layer;
  const at::Tensor all_inputs = waves(shape, 0.7);
  const at::Tensor input = all_inputs.narrow(0, first, size).clone().requires_grad_();
  const at::Tensor output = forward(input, layer);
  const at::Tensor target = waves(shape, 0.3).narrow(0, first, size);
  const at::Tensor loss = (output * target + output.pow(3) / 5).sum() / examples;
  (clock.counts ? loss : loss * 0).backward();

  const auto at_its_place = [&](const at::Tensor& part) {
    at::Tensor whole = at::zeros_like(all_inputs);
    if (clock.counts) whole.narrow(0, first, size).copy_(part.detach());
    return whole;
  };
  std::vector<at::Tensor> numbers{at_its_place(output), at_its_place(input.grad())};
  for (const at::Tensor& parameter : {layer.weight, layer.bias}) {
    const at::Tensor gradient = parameter.grad();
    numbers.push_back(gradient.defined() ? gradient : at::zeros_like(parameter).detach());
  }
  for (at::Tensor& each : numbers) {
    each = each.reshape({-1}).contiguous();
    world.sum(each);
  }
  numbers.insert(numbers.end(), {layer.mean, layer.variance});
  return at::cat(numbers);
}

std::vector<double> doubles_of(const at::Tensor& tensor) {
  const at::Tensor numbers = tensor.to(at::kDouble).contiguous();
  const auto* data = numbers.const_data_ptr<double>();
  return {data, data + numbers.numel()};
}

/// The largest difference to one process; infinite when there are other numbers of numbers.
double difference(int processes, const Forward& forward, const std::vector<int64_t>& shape,
                  bool is_synchronised = true) {
  // A child of fork has none of this process's threads.
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  World alone;
  const std::vector<double> expected = doubles_of(step(alone, forward, shape));
  double largest = 0;
  const auto texts = together(processes, [&](World& world) {
    return fmt::format("{}",
                       fmt::join(doubles_of(step(world, forward, shape, is_synchronised)), " "));
  });
  for (const std::string& text : texts) {
    CAPTURE(text);
    std::istringstream stream(text);
    size_t count = 0;
    for (double number; stream >> number; ++count) {
      if (count < expected.size()) {
        largest = std::max(largest, std::abs(number - expected[count]));
      }
    }
    if (count != expected.size()) {
      MESSAGE(text);
      largest = INFINITY;
    }
  }
  at::set_num_threads(threads);
  return largest;
}

at::Tensor trained(const at::Tensor& input, Layer& layer) {
  return at::batch_norm(input, layer.weight, layer.bias, layer.mean, layer.variance,
                        /*training=*/true, /*momentum=*/0.1, /*eps=*/1e-5, /*cudnn_enabled=*/true);
}

constexpr double kBound = 2e-6;

TEST_CASE("batch normalization of several processes is that of one with the whole batch") {
  for (const auto& shape :
       std::vector<std::vector<int64_t>>{{7, 3, 4, 5}, {8, 3}, {6, 3, 9}, {4, 3, 2, 3, 2}}) {
    CAPTURE(shape.size());
    for (const int processes : {2, 3}) {
      CAPTURE(processes);
      CHECK(difference(processes, trained, shape) < kBound);
    }
    CHECK(difference(2, trained, shape, /*is_synchronised=*/false) > 1e-2);
  }
}

TEST_CASE("a process without an example of the batch adds nothing to its statistics") {
  CHECK(difference(3, trained, {2, 3, 4, 5}) < kBound);
}

TEST_CASE("layers without weights or running statistics are normalized over all processes, too") {
  const Forward bare = [](const at::Tensor& input, Layer& /*layer*/) {
    return at::batch_norm(input, {}, {}, {}, {}, true, 0.1, 1e-5, true);
  };
  CHECK(difference(2, bare, {7, 3, 4, 5}) < kBound);
}

TEST_CASE("what is no batch normalization in training stays each process's own") {
  const Forward evaluated = [](const at::Tensor& input, Layer& layer) {
    return at::batch_norm(input, layer.weight, layer.bias, layer.mean, layer.variance, false, 0.1,
                          1e-5, true);
  };
  CHECK(difference(2, evaluated, {7, 3, 4, 5}) < kBound);
  const Forward by_instance = [](const at::Tensor& input, Layer& layer) {
    return at::instance_norm(input, layer.weight, layer.bias, {}, {}, true, 0.1, 1e-5, true);
  };
  CHECK(difference(3, by_instance, {7, 3, 4, 5}) < kBound);
}

TEST_CASE("one value in all processes together is refused in each of them") {
  for (const auto& text : together(2, [&](World& world) {
         return message_of([&] { step(world, trained, {1, 3}); });
       })) {
    CHECK(text == "Expected more than 1 value per channel when training, got input size [1, 3]");
  }
}

TEST_CASE("what two sessions of one process compute is synchronised by their own worlds alone") {
  const auto texts = together(2, [&](World& world) {
    const StepClock clock{.counts = true};
    World alone;
    SyncBatchNorm sync(world, clock);
    SyncBatchNorm other(alone, clock);
    const at::Tensor own = at::full({2, 3}, static_cast<float>(world.rank()));
    const auto mean_of = [&](SyncBatchNorm* session) {
      const SyncBatchNorm::Scope scope(session);
      Layer layer;
      layer.mean.zero_();
      trained(own, layer);
      return layer.mean[0].item<double>() * 10;  // the momentum is 0.1
    };
    double in_thread = -1;
    std::string means = fmt::format("{:.2f}", mean_of(&sync));
    {
      const SyncBatchNorm::Scope scope(&sync);
      means += fmt::format(" {:.2f}", mean_of(&other));
      std::thread([&] { in_thread = mean_of(nullptr); }).join();
      means += fmt::format(" {:.2f}", in_thread);
      Layer layer;
      layer.mean.zero_();
      trained(own, layer);
      means += fmt::format(" {:.2f}", layer.mean[0].item<double>() * 10);
    }
    Layer layer;
    layer.mean.zero_();
    trained(own, layer);
    return fmt::format("{} {:.2f}", means, layer.mean[0].item<double>() * 10);
  });
  REQUIRE(texts.size() == 2);
  CHECK(texts[0] == "0.50 0.00 0.00 0.50 0.00");
  CHECK(texts[1] == "0.50 1.00 1.00 0.50 1.00");
}

/// The last case, as processes cannot be forked behind threads of OpenMP. PyTorch 2.13:
/// torch.nn.functional.batch_norm and instance_norm with such an input.
TEST_CASE("the variance of one value is refused before statistics change, as in PyTorch") {
  replace_normalization();
  Layer layer;
  const auto said = [&](const std::vector<int64_t>& shape, const Forward& forward) {
    return message_of([&] { forward(waves(shape, 0.7), layer); });
  };
  CHECK(said({1, 3}, trained) ==
        "Expected more than 1 value per channel when training, got input size [1, 3]");
  CHECK(said({1, 3, 1, 1}, trained) ==
        "Expected more than 1 value per channel when training, got input size [1, 3, 1, 1]");
  const Forward by_instance = [](const at::Tensor& input, Layer& of) {
    return at::instance_norm(input, of.weight, of.bias, of.mean, of.variance, true, 0.1, 1e-5,
                             true);
  };
  CHECK(said({4, 3, 1}, by_instance) ==
        "Expected more than 1 spatial element when training, got input size [4, 3, 1]");
  CHECK(doubles_of(layer.variance) == std::vector<double>{2, 2, 2});
  CHECK(said({1, 3, 2}, trained) == "no error");
  CHECK(said({1, 3}, [](const at::Tensor& input, Layer& of) {
          return at::batch_norm(input, of.weight, of.bias, of.mean, of.variance, false, 0.1, 1e-5,
                                true);
        }) == "no error");
  CHECK(said({4, 3, 2}, by_instance) == "no error");
  CHECK(doubles_of(layer.variance.isfinite().to(at::kDouble)) == std::vector<double>{1, 1, 1});
}

}  // namespace sync_batch_norm_test
}  // namespace stepop
