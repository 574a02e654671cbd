// The hooks of a network, and what injectors and losses log besides numbers.
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "iterators/extensible/step/injector.h"
#include "iterators/extensible/step/loss.h"
#include "iterators/extensible/step/network_hooks.h"
#include "runtime/train/networks/network.h"
#include "tests/test_run.h"

namespace stepop {
namespace network_hooks_test {

using namespace extensible;

std::vector<std::string>& calls() {
  static std::vector<std::string> list;
  return list;
}

/// [B, 1]: the sum of two weights, whatever the input; notes each call of a hook.
class Hooked : public Network, public NetworkHooks {
 public:
  explicit Hooked(const Config& params)
      : name_(params.get("name", "a")),
        first_(register_parameter("first", at::ones({1}))),
        second_(register_parameter("second", at::ones({1}))) {}

  at::Tensor forward(const at::Tensor& x) override {
    return at::ones_like(x.flatten(1).narrow(1, 0, 1)) * (first_ + second_);
  }

  void update_for_step(int64_t iteration) override { note("update_for_step", iteration); }
  void after_backward(int64_t iteration) override { note("after_backward", iteration); }
  void before_step(int64_t iteration) override { note("before_step", iteration); }
  void after_step(int64_t iteration) override {
    note("after_step", iteration);
    first_.fill_(5);
  }
  OrderedMap<std::vector<at::Tensor>> get_grad_norm_parameter_groups() override {
    return {{"both", {first_, second_}}, {"second", {second_}}};
  }
  Scalars get_debug_values(int64_t) override { return {{"first", first_}}; }
  OrderedMap<at::Tensor> visual_dbg(int64_t) override {
    return {{"seen", at::zeros({1, 1, 4, 4})}};
  }

 private:
  void note(const char* hook, int64_t iteration) {
    calls().push_back(fmt::format("{} {}({})", name_, hook, iteration));
  }

  std::string name_;
  at::Tensor first_, second_;
};
STEPOP_REGISTER_MODEL(Hooked, {"For tests.", {{"name", "a", ""}}});

/// out = in, with more for the log.
class Measuring : public UnaryInjector {
 public:
  using UnaryInjector::UnaryInjector;
  at::Tensor compute(const at::Tensor& x) override { return last_ = x; }
  Logs extra_metrics() override {
    return {.scalars = {{"size/height", 3}, {"size/width", last_.size(0)}},
            .histograms = {{"histogram", last_}}};
  }

 private:
  at::Tensor last_;
};
STEPOP_REGISTER_INJECTOR(test_measuring, Measuring,
                         {"For tests.", {{"in", "", ""}, {"out", "", ""}}});

class MeasuringLoss : public Loss {
 public:
  MeasuringLoss(const Config& params, Ports& ports) : key_(ports.reads(params, "key")) {}
  at::Tensor compute(StepState& state, const Iteration&, Scalars&) override {
    return state.tensor(key_).mean();
  }
  Logs extra_metrics() override { return {.scalars = {{"half", 0.5}}}; }

 private:
  Slot key_;
};
STEPOP_REGISTER_LOSS(test_measuring, MeasuringLoss, {"For tests.", {{"key", "", ""}}});

constexpr const char* kConfig = R"(
iterator: ExtensibleTrainer
batch_size: 4
num_steps: 2
log_freq: 1
log_ops: [train/log_op, train/visuals_op]
datasets: {train: {class: RandomTensors, size: 40, tensors: {x: [3, 4, 4]}}}
networks:
  a: {class: Hooked, name: a}
  b: {class: Hooked, name: b}
steps:
  s:
    training: a
    optimizer: sgd
    optimizer_params: {lr: 0.1, momentum: 0, weight_decay: 0}
    clip_grad_eps: 0.01
    injectors:
      of_a: {type: generator, generator: a, in: x, out: of_a}
      seen: {type: test_measuring, in: of_a, out: seen}
      of_b: {type: generator, generator: b, in: x, out: of_b, every: 2}
    losses: {l: {type: test_measuring, key: seen, weight: 1}}
  t:
    training: b
    every: 2
    optimizer_params: {lr: 0.1}
    injectors: {again: {type: generator, generator: b, in: x, out: again}}
    losses: {m: {type: direct, key: again, weight: 1}}
)";

TEST_CASE("the hooks of all networks are called, in an order that is this one") {
  TestRun run(std::string(kConfig) + "train: {mega_batch_factor: 2}\n");
  calls().clear();
  run.train();
  std::vector<std::string> expected;
  const auto expect = [&](const char* hook, int iteration) {
    for (const char* network : {"a", "b"}) {
      expected.push_back(fmt::format("{} {}({})", network, hook, iteration));
    }
  };
  const auto expect_step = [&](int iteration) {
    for (const char* hook : {"after_backward", "after_backward", "before_step", "after_step"}) {
      expect(hook, iteration);
    }
  };
  expect("update_for_step", 0);
  expect_step(0);  // s
  expect_step(0);  // t
  expect("update_for_step", 1);
  expect_step(1);  // s alone
  CHECK(calls() == expected);
  // What a hook changes stays changed.
  CHECK(run.checkpoint(2).at("a.first").item<float>() == 5);
  CHECK(run.checkpoint(2).at("a.second").item<float>() < 1);
}

TEST_CASE("with accumulated batches an iteration begins once, and is updated once") {
  TestRun run(std::string(kConfig) + "accumulate: 3\n");
  calls().clear();
  run.train();
  const auto count = [&](const std::string& call) {
    return std::count(calls().begin(), calls().end(), call);
  };
  CHECK(count("a update_for_step(1)") == 1);
  CHECK(count("a after_backward(1)") == 3);
  CHECK(count("a before_step(1)") == 1);
}

TEST_CASE("norms of gradients before they are clipped, debug values and more metrics are logged") {
  TestRun run(kConfig);
  run.train();
  const auto line = run.metrics().at(0);
  // The loss is first + second, so each gradient is 1.
  CHECK(line.at("train/train_op/a_both").get<double>() == doctest::Approx(std::sqrt(2.0)));
  CHECK(line.at("train/train_op/a_second").get<double>() == doctest::Approx(1));
  CHECK(line.at("train/train_op/b_both").get<double>() == doctest::Approx(std::sqrt(2.0)));
  CHECK(line.at("train/log_op/a_first").get<double>() == 5);
  CHECK(line.at("train/train_op/seen_size/height").get<double>() == 3);
  CHECK(line.at("train/train_op/seen_size/width").get<double>() == 4);
  CHECK(line.at("train/train_op/loss_l_half").get<double>() == 0.5);
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run.root())) {
    files.push_back(entry.path().string());
  }
  const auto has = [&](const std::string& part) {
    return std::any_of(files.begin(), files.end(),
                       [&](const auto& file) { return file.find(part) != std::string::npos; });
  };
  CHECK(has("log_op/seen_histogram"));
  CHECK(has("visuals_op/a_seen"));
}

}  // namespace network_hooks_test
}  // namespace stepop
