// LBFGS, whose steps compute the loss several times, and SparseAdam, compared with torch.optim's.
#include <ATen/ops/embedding.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/formats/safetensors.h"
#include "runtime/train/optim/update.h"
#include "tests/message_of.h"
#include "tests/places.h"
#include "tests/runtime/train/optim/networks.h"

namespace stepop {
namespace passes_test {

using test_networks::config_of;

constexpr int64_t kSteps = 6;

SafetensorsFile file_of(const std::string& name) {
  return load_safetensors(STEPOP_SOURCE_DIR "/tests/data/optim/" + name + ".safetensors");
}

/// The parameters `start/` of a file, as in its first step.
NamedParameters start_of(const SafetensorsFile& file) {
  NamedParameters parameters;
  for (const auto& [key, start] : file.tensors) {
    if (key.starts_with("start/")) {
      parameters.emplace_back(key.substr(6), start.clone().requires_grad_());
    }
  }
  return parameters;
}

double largest_difference(const SafetensorsFile& file, const std::string& of,
                          const NamedParameters& parameters) {
  double largest = 0;
  for (const auto& [name, tensor] : parameters) {
    const at::Tensor difference = tensor.detach() - file.tensors.at(of + "/" + name);
    largest = std::max(largest, difference.abs().max().item<double>());
  }
  return largest;
}

at::Tensor named(const NamedParameters& parameters, const std::string& name) {
  for (const auto& [each, tensor] : parameters) {
    if (each == name) return tensor;
  }
  throw Error("no " + name);
}

/// The loss of a step of lbfgs.safetensors.
at::Tensor loss_of(const SafetensorsFile& file, const NamedParameters& parameters, int64_t step) {
  const at::Tensor hidden =
      (at::matmul(file.tensors.at("x")[step], named(parameters, "hidden").t()) +
       named(parameters, "bias"))
          .tanh();
  return (at::matmul(hidden, named(parameters, "out").t()) - file.tensors.at("y")[step])
      .square()
      .mean();
}

TEST_CASE("LBFGS goes the way of torch.optim's, also when it resumes in between") {
  const SafetensorsFile file = file_of("lbfgs");
  REQUIRE(file.metadata.size() == 5);
  for (const auto& [name, text] : file.metadata) {
    INFO(name);
    NamedParameters parameters = start_of(file);
    StepClock clock;
    auto update = std::make_unique<Update>(config_of(text), parameters, clock);
    for (; clock.global_step < kSteps; ++clock.global_step) {
      const auto loss = [&] { return loss_of(file, parameters, clock.global_step); };
      update->step(loss(), loss);
      const std::string of = fmt::format("{}/{}", name, clock.global_step);
      CHECK(largest_difference(file, of, parameters) < 1e-9);
      if (clock.global_step != 2) continue;
      State state;  // goes on as another object
      for (const auto& [key, tensor] : update->state()) state.emplace(key, tensor.clone());
      update = std::make_unique<Update>(config_of(text), parameters, clock);
      update->load_state(state);
    }
    CHECK(update->count() == kSteps);
  }
}

TEST_CASE("a loss that LBFGS finds infinite in a trial leaves weights and state as they were") {
  const SafetensorsFile file = file_of("lbfgs");
  for (const char* search : {"none", "strong_wolfe"}) {
    CAPTURE(search);
    for (const int64_t bad : {2, 5, 9}) {
      CAPTURE(bad);
      NamedParameters parameters = start_of(file);
      StepClock clock;
      Update update(
          config_of(fmt::format("{{class: LBFGS, history_size: 4, line_search_fn: {}}}", search)),
          parameters, clock, OnNan::kSkip);
      const auto loss = [&] { return loss_of(file, parameters, 0); };
      update.step(loss(), loss);
      State before;
      for (const auto& [key, tensor] : update.optimizer().state())
        before.emplace(key, tensor.clone());
      std::vector<at::Tensor> weights;
      for (const auto& [name, tensor] : parameters) weights.push_back(tensor.detach().clone());
      int64_t count = 0;
      const auto fails = [&] {
        const double factor = ++count == bad ? std::numeric_limits<double>::infinity() : 1;
        return loss_of(file, parameters, 1) * factor;
      };
      update.step(loss_of(file, parameters, 1), fails);
      REQUIRE(count == bad);
      for (size_t i = 0; i < weights.size(); ++i) {
        CHECK(parameters[i].second.detach().equal(weights[i]));
      }
      for (const auto& [key, tensor] : update.optimizer().state()) {
        CAPTURE(key);
        CHECK(tensor.equal(before.at(key)));
      }
      CHECK(update.skipped() == 1);
      CHECK(update.count() == 1);
      CHECK(update.read_non_finite() ==
            "optimizer: inf in the loss of a trial in step 1: the update was left out");
    }
  }
}

TEST_CASE("what LBFGS cannot do is said before the step") {
  NamedParameters parameters = start_of(file_of("lbfgs"));
  StepClock clock;
  const auto loss = [&] { return parameters[0].second.square().mean(); };
  const auto refused = [&](const std::string& more) {
    return message_of([&] {
      Update update(config_of("{class: LBFGS" + more + "}"), parameters, clock);
      update.step(loss(), loss);
    });
  };
  CHECK(
      refused(", clip_norm: 1") ==
      "test.yaml:1: clip_norm: the optimizer computes the loss several times in a step, and trusts "
      "its gradients: leave it out");
  const std::string needs =
      "state_on_cpu: the optimizer needs its state in other places than its update: leave it out";
  CHECK(refused(", state_on_cpu: true") == "test.yaml:1: " + needs);
  CHECK(message_of([&] {
          Update(config_of("{class: ScheduleFreeAdamW, state_on_cpu: true}"), parameters, clock);
        }).ends_with(needs));
  clock.micro_batches = 2;
  CHECK(refused("").ends_with("which accumulate does not: give it a larger batch_size"));
  clock.micro_batches = 1;
  Update update(config_of("{class: LBFGS}"), parameters, clock);
  CHECK(message_of([&] { update.step(loss()); }) ==
        "LBFGS computes the loss several times in a step: the iterator says how, by "
        "update.step(loss, [=] { return loss_of(batch); })");
  CHECK(message_of([&] {
          Update(config_of("{class: LBFGS, groups: [{match: out, lr: 0.1}]}"), parameters, clock);
        }).ends_with("all parameters are one vector: one type, one device, no groups"));
  CHECK(message_of([&] {
          Update(config_of("{class: LBFGS, weight_decay: 0.1}"), parameters, clock);
        }).ends_with("weight_decay: LBFGS has none: leave it out"));
  // Another optimizer computes the loss once.
  int64_t count = 0;
  Update sgd(config_of("{class: SGD, lr: 0.1}"), parameters, clock);
  sgd.step(loss(), [&] {
    ++count;
    return loss();
  });
  CHECK(count == 0);
  CHECK(sgd.count() == 1);
}

TEST_CASE("SparseAdam goes the way of torch.optim's, and of Adam for what is not sparse") {
  const SafetensorsFile file = file_of("sparse");
  REQUIRE(file.metadata.size() == 2);
  for (const auto& [name, text] : file.metadata) {
    INFO(name);
    const NamedParameters parameters = start_of(file);
    StepClock clock;
    Update update(config_of(text), parameters, clock);
    for (; clock.global_step < kSteps; ++clock.global_step) {
      const at::Tensor rows = file.tensors.at("rows")[clock.global_step];
      const at::Tensor found =
          at::embedding(named(parameters, "embedding"), rows, /*padding_idx=*/-1,
                        /*scale_grad_by_freq=*/false, /*sparse=*/true);
      const at::Tensor output = found * named(parameters, "scale");
      update.step((output - file.tensors.at("target")[clock.global_step]).square().mean());
      const std::string of = fmt::format("{}/{}", name, clock.global_step);
      CHECK(largest_difference(file, of, parameters) < 2e-6);
    }
  }
}

TEST_CASE("sparse gradients are clipped and checked as others; optimizers that take none say so") {
  const auto table = at::ones({4, 2}).requires_grad_();
  const NamedParameters parameters = {{"table", table}};
  StepClock clock;
  const auto loss = [&](double factor) {
    const at::Tensor rows = at::ones({2}, at::kLong);
    return at::embedding(table, rows, -1, false, true).sum() * factor;
  };
  Update clipped(config_of("{class: SparseAdam, clip_norm: 0.5}"), parameters, clock);
  clipped.step(loss(1));
  CHECK(clipped.grad_norm().item<double>() == doctest::Approx(2 * std::sqrt(2.0)));
  CHECK(table.detach()[0].equal(at::ones({2})));
  CHECK_FALSE(table.detach()[1].equal(at::ones({2})));
  Update watched(config_of("{class: SparseAdam}"), parameters, clock);
  const double infinite = std::numeric_limits<double>::infinity();
  CHECK(message_of([&] {
          watched.backward(loss(1));
          table.mutable_grad()._values().fill_(infinite);
          watched.apply();
        }).starts_with("optimizer: inf in the gradient of table in step 1: "));
  Update sgd(config_of("{class: SGD, lr: 1}"), parameters, clock);
  CHECK(message_of([&] { sgd.step(loss(1)); }).find("class: SparseAdam takes it") !=
        std::string::npos);
}

}  // namespace passes_test
}  // namespace stepop
