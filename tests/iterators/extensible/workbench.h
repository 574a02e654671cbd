#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "iterators/extensible/step/injector.h"
#include "iterators/extensible/step/loss.h"
#include "tests/test_run.h"

namespace stepop::extensible {

/// A state, and components that are built by themselves. There are the networks `a`, toy_g with nf
/// 4 and scale 2, and `d`, toy_d with nf 4, which is the one that is trained.
class Workbench {
 public:
  Workbench()
      : run_(
            "iterator: ExtensibleTrainer\ndevice: cpu\nbatch_size: 2\nnum_steps: 1\nseed: 1\n"
            "datasets: {train: {class: RandomTensors, tensors: {x: [3, 4, 4]}}}\n"
            "networks: {a: {which_model: toy_g, nf: 4, scale: 2}, d: {which_model: toy_d, nf: 4}}\n"
            "steps:\n"
            "  s: {training: a, optimizer_params: {lr: 1}, injectors: {i: {type: generator, "
            "generator: a, in: x, out: o}}, losses: {l: {type: direct, key: o, weight: 1}}}\n"
            "  t: {training: d, optimizer_params: {lr: 1}, injectors: {i: {type: discriminator, "
            "discriminator: d, in: x, out: p}}, losses: {l: {type: direct, key: p, weight: 1}}}\n"),
        state_(keys_) {}

  StepState& state() { return state_; }

  void set(const std::string& key, Item item) { given_.emplace_back(key, std::move(item)); }
  void clear() { given_.clear(); }

  std::unique_ptr<Injector> injector(const Config& params) {
    Ports ports(run_.session.context(), keys_, "d");
    return make_injector(params, ports);
  }
  std::unique_ptr<Loss> loss(const Config& params) {
    Ports ports(run_.session.context(), keys_, "d");
    return make_loss(params, ports);
  }

  /// Runs an injector over what was set.
  void inject(const std::string& yaml, int64_t iteration = 0, bool is_training = true) {
    const Config params = test_config(yaml);
    const auto made = injector(params);
    fill();
    made->run(state_, {iteration, is_training});
    CHECK(params.unknown_keys() == "");
  }

  double loss(const std::string& yaml, int64_t iteration = 0) {
    return loss_tensor(yaml, iteration).item<double>();
  }

  at::Tensor loss_tensor(const std::string& yaml, int64_t iteration = 0) {
    const Config params = test_config(yaml);
    const auto made = loss(params);
    const at::Tensor value = compute(*made, iteration);
    CHECK(params.unknown_keys() == "");
    return value;
  }

  at::Tensor compute(Loss& loss, int64_t iteration = 0, bool is_training = true) {
    fill();
    metrics = {};
    return loss.compute(state_, {iteration, is_training}, metrics);
  }

  const at::Tensor& at(const std::string& key) { return state_.tensor(keys_.slot(key)); }
  const Item& item(const std::string& key) { return state_.item(keys_.slot(key)); }
  TestRun& run() { return run_; }
  const Context& context() { return run_.session.context(); }

  Scalars metrics;

 private:
  void fill() {
    for (const auto& [key, item] : given_) keys_.slot(key);
    state_.clear();
    for (const auto& [key, item] : given_) state_.set(keys_.slot(key), item);
  }

  TestRun run_;
  Keys keys_;
  StepState state_;
  std::vector<std::pair<std::string, Item>> given_;
};

}  // namespace stepop::extensible
