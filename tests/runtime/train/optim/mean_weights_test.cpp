// Gradients of means over labels of which some do not count, in parts of a batch and in processes,
// against the gradient of the mean over all.

#include "runtime/train/optim/mean_weights.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <numeric>
#include <string>
#include <vector>

#include "runtime/train/optim/update.h"
#include "tests/runtime/train/distributed/together.h"
#include "tests/runtime/train/optim/networks.h"

namespace stepop {
namespace mean_weights_test {

using namespace test_networks;

/// How the weight of a mean is given.
enum class Given { kNumber, kTensor, kLate };

/// The losses of the examples [B], and how much each counts.
struct Examples {
  at::Tensor input;
  at::Tensor counts;

  Examples part(int64_t begin, int64_t end) const {
    return {input.slice(0, begin, end), counts.slice(0, begin, end)};
  }
  at::Tensor losses(const TestLayer& layer) const { return layer.forward(input).square().mean(1); }
  WeightedMean mean(const TestLayer& layer, Given given) const {
    const WeightedMean mean = weighted_mean(losses(layer), counts);
    if (given == Given::kNumber) return {mean.value(), mean.weight().item<double>()};
    if (given == Given::kTensor) return mean;
    return {mean.value(), [weight = mean.weight()] { return weight; }};
  }
};

Examples examples_of(const std::vector<double>& counts) {
  const auto size = static_cast<int64_t>(counts.size());
  return {test_input(size), at::tensor(counts, at::kFloat)};
}

/// The gradient of the weight for the mean over all, by autograd alone.
at::Tensor expected(const Examples& all) {
  const TestLayer layer;
  const at::Tensor losses = all.losses(layer);
  (losses * all.counts).sum().div(all.counts.sum()).backward();
  return layer.weight.grad();
}

/// The gradient that an update makes of parts of these sizes. Each of `world` takes its share.
at::Tensor gradient(const Examples& all, const std::vector<int64_t>& sizes, Given given,
                    World* world = nullptr) {
  const TestLayer layer;
  StepClock clock;
  Update update(config_of("{class: SGD, lr: 1}"), layer.parameters(), clock);
  if (world != nullptr) update.share(*world);
  clock.micro_batches = static_cast<int64_t>(sizes.size());
  clock.step_examples = all.input.size(0);
  const at::Tensor before = layer.weight.detach().clone();
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    int64_t own_begin = begin;
    int64_t own_end = begin + size;
    if (world != nullptr) {
      own_begin = begin + size * world->rank() / world->size();
      own_end = begin + size * (world->rank() + 1) / world->size();
    }
    clock.batch_examples = own_end - own_begin;
    // A process without an example runs another in its place.
    update.step(all.part(own_begin, std::max(own_end, own_begin + 1)).mean(layer, given));
    begin += size;
    ++clock.micro_batch;
  }
  CHECK(update.count() == 1);
  return before - layer.weight.detach();
}

const std::vector<double> kCounts = {1, 0, 0, 0, 2.5, 1, 1, 0};
const std::vector<std::vector<int64_t>> kParts = {{8}, {4, 4}, {2, 2, 2, 2}, {1, 4, 3}};

TEST_CASE("the gradient of parts of a batch is that of the whole, whatever does not count") {
  const Examples all = examples_of(kCounts);
  for (const auto& sizes : kParts) {
    for (const Given given : {Given::kNumber, Given::kTensor, Given::kLate}) {
      CAPTURE(sizes.size());
      CHECK(at::allclose(gradient(all, sizes, given), expected(all), 1e-5, 1e-7));
    }
  }
  // Nothing counts in the first part.
  const Examples late = examples_of({0, 0, 0, 0, 1, 1, 0, 1});
  for (const Given given : {Given::kNumber, Given::kLate}) {
    CHECK(at::allclose(gradient(late, {4, 4}, given), expected(late), 1e-5, 1e-7));
    CHECK(at::allclose(gradient(late, {4, 2, 2}, given), expected(late), 1e-5, 1e-7));
  }
}

TEST_CASE("the gradient of two and three processes is that of one, whatever does not count") {
  for (const int processes : {2, 3}) {
    CHECK(together(processes, [](World& world) {
            const Examples all = examples_of(kCounts);
            const Examples first = examples_of({0, 1, 1, 0, 0, 0, 0, 0});
            std::string wrong;
            for (const Given given : {Given::kNumber, Given::kLate}) {
              for (const auto& sizes : kParts) {
                for (const Examples& each : {all, first}) {
                  const at::Tensor found = gradient(each, sizes, given, &world);
                  if (at::allclose(found, expected(each), 1e-5, 1e-7)) continue;
                  wrong += fmt::format("{} parts ", sizes.size());
                }
              }
            }
            return wrong;
          }) == std::vector<std::string>(static_cast<size_t>(processes)));
  }
}

TEST_CASE("where everything counts, a weight changes no bit") {
  const TestLayer with;
  const TestLayer without;
  StepClock clock;
  Update of_with(config_of("{class: SGD, lr: 1}"), with.parameters(), clock);
  Update of_without(config_of("{class: SGD, lr: 1}"), without.parameters(), clock);
  clock.micro_batches = 3;
  clock.step_examples = 7;
  const Examples all = examples_of({1, 1, 1, 1, 1, 1, 1});
  int64_t begin = 0;
  for (const int64_t size : {3, 3, 1}) {
    const Examples part = all.part(begin, begin + size);
    clock.batch_examples = size;
    of_with.step({part.losses(with).mean(), 49 * size});
    of_without.step(part.losses(without).mean());
    begin += size;
    ++clock.micro_batch;
  }
  CHECK(at::equal(with.weight, without.weight));
  CHECK(at::equal(with.bias, without.bias));
}

TEST_CASE("weights that wait for later batches are a part of the state") {
  const Examples all = examples_of(kCounts);
  StepClock clock;
  clock.micro_batches = 2;
  clock.batch_examples = 4;
  clock.step_examples = 8;
  const TestLayer whole;
  Update update(config_of("{class: SGD, lr: 1}"), whole.parameters(), clock);
  update.backward(all.part(0, 4).mean(whole, Given::kNumber));
  State saved;
  for (const auto& [name, tensor] : update.state()) saved[name] = tensor.clone();

  const TestLayer resumed;
  Update other(config_of("{class: SGD, lr: 1}"), resumed.parameters(), clock);
  other.load_state(saved);
  const at::Tensor before = whole.weight.detach().clone();
  for (const auto& [one, layer] : {std::pair{&update, &whole}, std::pair{&other, &resumed}}) {
    one->backward(all.part(4, 8).mean(*layer, Given::kNumber));
    one->apply();
  }
  CHECK(at::equal(whole.weight, resumed.weight));
  CHECK(at::allclose(before - whole.weight.detach(), expected(all), 1e-5, 1e-7));
  CHECK_FALSE(update.state().contains("weight_sums"));
}

TEST_CASE("gradients of a scaled loss and of parts that an iterator divides are the same") {
  const Examples all = examples_of(kCounts);
  for (const bool scales : {false, true}) {
    const TestLayer layer;
    StepClock clock;
    Update update(config_of("{class: SGD, lr: 1}"), layer.parameters(), clock);
    if (scales) update.scale_losses({});
    clock.micro_batches = 2;
    clock.batch_examples = 4;
    clock.step_examples = 8;
    const at::Tensor before = layer.weight.detach().clone();
    for (const int64_t begin : {0, 4}) {
      update.backward(all.part(begin, begin + 1).mean(layer, Given::kNumber), false, 0.25);
      update.backward(all.part(begin + 1, begin + 4).mean(layer, Given::kNumber), false, 0.75);
    }
    update.apply();
    CHECK(at::allclose(before - layer.weight.detach(), expected(all), 1e-5, 1e-7));
  }
}

TEST_CASE("a step in which nothing counts is an update by 0, and is reported once") {
  const Examples nothing = examples_of({0, 0, 0, 0});
  for (const int64_t parts : {1, 2}) {
    const TestLayer layer;
    StepClock clock;
    clock.global_step = 6;
    clock.micro_batches = parts;
    clock.batch_examples = 4;
    clock.step_examples = 4 * parts;
    Update update(config_of("{class: SGD, lr: 1}"), layer.parameters(), clock);
    const at::Tensor before = layer.weight.detach().clone();
    CHECK(update.read_uncounted().empty());
    for (clock.micro_batch = 0; clock.micro_batch < parts; ++clock.micro_batch) {
      update.step(nothing.mean(layer, Given::kNumber));
    }
    CHECK(update.count() == 1);
    CHECK(at::equal(layer.weight, before));
    CHECK(update.read_uncounted() ==
          fmt::format("optimizer: nothing counts in {} so far, the first in step 7: every label, "
                      "token or pixel is left out, as by -100. Such a batch adds nothing to "
                      "gradients and logs",
                      parts == 1 ? "1 batch" : "2 batches"));
    CHECK(update.read_uncounted().empty());
  }
}

}  // namespace mean_weights_test
}  // namespace stepop
