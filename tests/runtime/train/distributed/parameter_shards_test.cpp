// Optimizer state that several processes share out, against one that each keeps whole.

#include "runtime/train/distributed/parameter_shards.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <numeric>

#include "runtime/train/checkpoint/shared_state.h"
#include "runtime/train/optim/update.h"
#include "tests/message_of.h"
#include "tests/runtime/train/distributed/together.h"
#include "tests/runtime/train/optim/networks.h"
#include "tests/same_state.h"

namespace stepop {
namespace parameter_shards_test {

using namespace test_networks;
using Texts = std::vector<std::string>;

TEST_CASE("the largest parameters are shared out first, to the process that has least") {
  CHECK(shard_owners({1, 5, 4, 3}, 2) == std::vector<int>{0, 0, 1, 1});
  CHECK(shard_owners({7, 7, 7}, 3) == std::vector<int>{0, 1, 2});
  CHECK(shard_owners({9}, 3) == std::vector<int>{0});
  std::vector<int64_t> sizes(100);
  std::iota(sizes.begin(), sizes.end(), 1);
  std::vector<int64_t> held(4);
  const std::vector<int> owners = shard_owners(sizes, 4);
  for (size_t i = 0; i < sizes.size(); ++i) held[static_cast<size_t>(owners[i])] += sizes[i];
  for (const int64_t each : held) CHECK(std::abs(each - 5050 / 4) <= 2);
}

TEST_CASE("all get what each has updated, in their own memory, and autograd sees it") {
  CHECK(together(3, [](World& world) {
          std::vector<at::Tensor> parameters;
          for (const int64_t size : {4, 3, 2, 2}) {
            parameters.push_back(at::zeros({size, 2}, at::kFloat).requires_grad_());
          }
          parameters.push_back(at::zeros({5}, at::kDouble).requires_grad_());
          parameters.push_back(
              at::zeros({1, 2, 3, 3}, at::kFloat).to(at::MemoryFormat::ChannelsLast));
          ParameterShards shards(world, parameters);
          std::string wrong;
          for (size_t i = 0; i < parameters.size(); ++i) {
            const at::NoGradGuard no_grad;
            if (shards.is_own(i)) parameters[i].fill_(static_cast<double>(i) + 1);
          }
          std::vector<const void*> places;
          std::vector<int64_t> versions;
          for (const auto& each : parameters) {
            places.push_back(each.const_data_ptr());
            versions.push_back(static_cast<int64_t>(each._version()));
          }
          shards.share();
          for (size_t i = 0; i < parameters.size(); ++i) {
            const at::Tensor& each = parameters[i];
            const bool is_right = each.eq(static_cast<double>(i) + 1).all().item<bool>() &&
                                  each.const_data_ptr() == places[i] &&
                                  (each._version() > versions[i]) != shards.is_own(i);
            if (!is_right) wrong += std::to_string(i);
          }
          return wrong;
        }) == Texts(3));
}

/// Ten updates, each process with its part of every batch: what a checkpoint of all then has, and
/// the weights.
State trained(World& world, const std::string& optimizer, bool shards, State from = {}) {
  TestLayer layer;
  StepClock clock;
  Update update(config_of(optimizer), layer.parameters(), clock);
  update.share(world, shards);
  if (!from.empty()) {
    const at::NoGradGuard no_grad;
    layer.weight.copy_(from.extract("weight").mapped());
    layer.bias.copy_(from.extract("bias").mapped());
    update.load_state(from);
  }
  clock.step_examples = 4 * world.size();
  clock.batch_examples = 4;
  for (clock.global_step = 0; clock.global_step < 10; ++clock.global_step) {
    const at::Tensor input = test_input(4, 10 * clock.global_step + world.rank());
    update.step(layer.forward(input).square().mean());
  }
  State tracked;
  for (const auto& [name, tensor] : update.state()) tracked["update." + name] = tensor;
  const auto always = [](std::string_view) { return true; };
  State state{{"weight", layer.weight.detach().clone()}, {"bias", layer.bias.detach().clone()}};
  for (const auto& [name, tensor] : gathered_state(world, tracked, always, always)) {
    state[name.substr(name.find('.') + 1)] = tensor.clone();
  }
  return state;
}

TEST_CASE("updates with a state in parts have the bits, and the checkpoints, of whole ones") {
  for (const std::string optimizer :
       {"{class: Adam, lr: 0.1, clip_norm: 0.5}", "{class: SGD, lr: 0.1, momentum: 0.9}",
        "{class: LAMB, lr: 0.01}", "{class: Muon, lr: 0.01}", "{class: Adafactor, lr: 0.1}",
        "{class: AdamW, groups: [{match: bias, weight_decay: 0}]}"}) {
    CAPTURE(optimizer);
    for (const int processes : {2, 3}) {
      CHECK(together(processes, [&](World& world) {
              const State whole = trained(world, optimizer, false);
              const State in_parts = trained(world, optimizer, true);
              const State whole_later = trained(world, optimizer, false, whole);
              const State in_parts_later = trained(world, optimizer, true, whole);
              if (world.is_root()) {
                return differences(in_parts, whole) + differences(in_parts_later, whole_later);
              }
              const bool is_part = in_parts.size() < whole.size();
              return std::string(
                  is_part && at::equal(in_parts_later.at("weight"), whole_later.at("weight"))
                      ? ""
                      : "wrong");
            }) == Texts(static_cast<size_t>(processes)));
    }
  }
}

TEST_CASE("an optimizer whose averages are evaluated does not share out its state") {
  CHECK(together(2,
                 [](World& world) {
                   StepClock clock;
                   Update update(config_of("ScheduleFreeAdamW"), TestLayer().parameters(), clock);
                   return message_of([&] { update.share(world, /*shards=*/true); });
                 }) ==
        Texts(2,
              "optimizer: its averages are evaluated, which needs the whole state in every "
              "process: leave distributed/shard_optimizer out"));
}

}  // namespace parameter_shards_test
}  // namespace stepop
