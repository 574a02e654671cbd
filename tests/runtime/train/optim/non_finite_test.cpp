#include "runtime/train/optim/non_finite.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "runtime/train/optim/update.h"
#include "tests/message_of.h"
#include "tests/runtime/train/optim/networks.h"
#include "tests/same_state.h"

namespace stepop {
namespace non_finite_test {

using namespace test_networks;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const char* const kOptimizers[] = {
    "{class: SGD, lr: 0.1}",
    "{class: SGD, lr: 0.1, momentum: 0.9, dampening: 0.5}",
    "{class: Adam, lr: 0.1}",
    "{class: Adam, lr: 0.1, groups: [{match: bias, lr: 0.01}]}",
    "{class: AdamW, lr: 0.1, amsgrad: true}",
    "{class: AdamW, lr: 0.1, clip_norm: 0.5}",
    "{class: SGD, lr: 0.1, momentum: 0.9, clip_value: 0.5, clip_norm: 0.5}",
    "{class: Muon, lr: 0.1, adamw_lr: 0.1}",
    "{class: Adafactor, lr: 0.1, weight_decay: 0.1}",
    "{class: ScheduleFreeAdamW, lr: 0.1}",
};

/// A layer, its update, and the batches that it gets. `on_device` checks as on a GPU.
struct Training {
  Training(const std::string& config, OnNan on_nan, bool on_device,
           at::ScalarType type = at::kFloat)
      : update(config_of(config), typed(type), clock, on_nan, on_device) {}

  at::Tensor loss() const {
    const at::Tensor input = test_input(8, clock.global_step).to(layer.weight.scalar_type());
    return layer.forward(input).square().mean();
  }
  void good_steps(int64_t count) {
    for (int64_t i = 0; i < count; ++i, ++clock.global_step) update.step(loss());
  }
  /// A step whose loss or gradient is not finite. The clock stays.
  void bad_step(int kind) {
    if (kind == 0) update.step(loss() * std::nan(""));
    if (kind == 1) update.step(loss() + kInfinity);  // its gradient is finite
    if (kind == 2) update.step(loss() + (layer.bias - layer.bias.detach()).sqrt().sum());
  }
  /// Everything that an update changes, copied; not the step of its rate, which is logged of one
  /// that was not made as well.
  State state() const {
    State state = update.state();
    state.erase("skipped");
    state.erase("lr_step");
    state.emplace("weight", layer.weight.detach());
    state.emplace("bias", layer.bias.detach());
    for (auto& [name, tensor] : state) tensor = tensor.clone();
    return state;
  }

  TestLayer layer;
  StepClock clock;
  Update update;

 private:
  NamedParameters typed(at::ScalarType type) {
    layer.weight = layer.weight.detach().to(type).requires_grad_();
    layer.bias = layer.bias.detach().to(type).requires_grad_();
    return layer.parameters();
  }
};

TEST_CASE("stop: an update that is not finite leaves every bit as it was and throws") {
  for (const char* config : kOptimizers) {
    for (const int kind : {0, 1, 2}) {
      CAPTURE(config);
      CAPTURE(kind);
      Training training(config, OnNan::kStop, /*on_device=*/false);
      training.good_steps(3);
      const State before = training.state();
      CHECK_THROWS_AS(training.bad_step(kind), NonFinite);
      CHECK(differences(training.state(), before) == "");
      CHECK(training.update.count() == 3);
      CHECK_FALSE(training.layer.weight.grad().defined());
      CHECK_FALSE(training.layer.bias.grad().defined());
    }
  }
}

TEST_CASE("stop, the GPU's way: no update happens any more, and the next reading throws") {
  for (const char* config : kOptimizers) {
    for (const int kind : {0, 1, 2}) {
      CAPTURE(config);
      CAPTURE(kind);
      Training training(config, OnNan::kStop, /*on_device=*/true);
      training.good_steps(3);
      CHECK(training.update.read_non_finite() == "");
      const State before = training.state();
      training.bad_step(kind);
      ++training.clock.global_step;
      training.good_steps(2);
      CHECK(differences(training.state(), before) == "");
      CHECK(message_of([&] { training.update.read_non_finite(); }) ==
            "optimizer: nan or inf in the loss or a gradient in step 4: the update was not made. A "
            "smaller lr, a warmup or clip_norm may prevent it; on_nan: skip leaves such updates "
            "out");
      CHECK(training.update.count() == 3);
      training.good_steps(1);
      CHECK(differences(training.state(), before) == "");
    }
  }
}

TEST_CASE("skip: the run goes on with the bits of one without the bad batches") {
  for (const char* config : kOptimizers) {
    for (const bool on_device : {false, true}) {
      for (const int kind : {0, 1, 2}) {
        CAPTURE(config);
        CAPTURE(on_device);
        CAPTURE(kind);
        Training without(config, OnNan::kSkip, false);
        without.good_steps(5);
        Training training(config, OnNan::kSkip, on_device);
        training.bad_step(kind);  // the very first one
        training.good_steps(3);
        training.bad_step(kind);
        training.bad_step(kind);
        training.good_steps(2);
        CHECK(differences(training.state(), without.state()) == "");
        CHECK(training.update.state().at("skipped").item<int64_t>() == 3);
        CHECK(training.update.read_non_finite().starts_with("optimizer: 3 updates were left out"));
        CHECK(training.update.skipped() == 3);
        CHECK(training.update.count() == 5);
        CHECK(training.update.read_non_finite() == "");

        Training resumed(config, OnNan::kSkip, on_device);
        resumed.update.load_state(training.update.state());
        CHECK(resumed.update.skipped() == 3);
      }
    }
  }
}

TEST_CASE("a warning tells the first step and what was found") {
  Training training(kOptimizers[0], OnNan::kSkip, false);
  training.good_steps(6);
  training.bad_step(2);
  CHECK(training.update.read_non_finite() ==
        "optimizer: inf in the gradient of fc.bias in step 7: the update was left out");
  training.bad_step(0);
  training.good_steps(2);
  training.bad_step(1);
  CHECK(training.update.read_non_finite() ==
        "optimizer: 2 updates were left out, the first for nan in the loss in step 7");
  Training on_device(kOptimizers[0], OnNan::kSkip, true);
  on_device.good_steps(6);
  on_device.bad_step(2);
  on_device.good_steps(1);
  on_device.bad_step(2);
  CHECK(on_device.update.read_non_finite() ==
        "optimizer: 2 updates were left out, the first for nan or inf in the loss or a gradient in "
        "step 7");
}

TEST_CASE("ignore: NaN reaches the weights, as with torch.optim") {
  for (const char* config : kOptimizers) {
    for (const bool on_device : {false, true}) {
      Training training(config, OnNan::kIgnore, on_device);
      training.bad_step(0);
      CHECK(training.layer.weight.isnan().all().item<bool>());
      CHECK(training.update.count() == 1);
      CHECK(training.update.read_non_finite() == "");
    }
  }
}

TEST_CASE("parameters of 16 bits are protected, too") {
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    for (const char* config : kOptimizers) {
      for (const bool on_device : {false, true}) {
        CAPTURE(config);
        CAPTURE(on_device);
        Training without(config, OnNan::kSkip, false, type);
        without.good_steps(4);
        Training training(config, OnNan::kSkip, on_device, type);
        for (const int kind : {0, 1, 2}) {
          training.good_steps(1);
          training.bad_step(kind);
        }
        training.good_steps(1);
        CHECK(differences(training.state(), without.state()) == "");
      }
    }
  }
}

TEST_CASE("one bad batch of a training step spoils the step, and no other one") {
  for (const bool on_device : {false, true}) {
    for (const int64_t bad : {0, 1, 2}) {
      CAPTURE(on_device);
      CAPTURE(bad);
      Training training("{class: Adam, lr: 0.1}", OnNan::kSkip, on_device);
      training.good_steps(1);
      const State before = training.state();
      StepClock& clock = training.clock;
      clock.micro_batches = 3;
      for (clock.micro_batch = 0; clock.micro_batch < 3; ++clock.micro_batch) {
        training.update.step(training.loss() + (clock.micro_batch == bad ? kInfinity : 0));
      }
      CHECK(differences(training.state(), before) == "");
      CHECK_FALSE(training.layer.weight.grad().defined());
      clock = {.global_step = 2};
      training.good_steps(1);
      CHECK(training.update.state().at("count").item<int64_t>() == 2);
      CHECK(training.update.state().at("skipped").item<int64_t>() == 1);
    }
  }
}

TEST_CASE("what is thrown tells the update, what was not finite, its value and the step") {
  Training training("{class: SGD, clip_norm: 1}", OnNan::kStop, false);
  training.good_steps(2);
  const auto caught = [](const auto& call) -> NonFinite {
    try {
      call();
    } catch (const NonFinite& error) {
      return error;
    }
    throw Error("nothing was thrown");
  };
  const NonFinite loss = caught([&] { training.bad_step(1); });
  CHECK(loss.what() == std::string("optimizer: inf in the loss in step 3: the update was not made. "
                                   "A smaller lr, a warmup or clip_norm may prevent it; on_nan: "
                                   "skip leaves such updates out"));
  CHECK(loss.update() == "optimizer");
  CHECK(loss.subject() == "the loss");
  CHECK(loss.value().value() == kInfinity);
  CHECK(loss.global_step() == 2);

  at::Tensor gradient = at::ones({4, 3});
  gradient[2][1] = -kInfinity;
  gradient[3][0] = std::nan("");
  training.layer.weight.mutable_grad() = gradient;
  training.layer.bias.mutable_grad() = at::full({4}, std::nan(""));
  const NonFinite both = caught([&] { training.update.apply(); });
  CHECK(both.finding() == "-inf in the gradients of fc.weight, fc.bias in step 3");

  training.layer.weight.mutable_grad() = at::full({4, 3}, 3e38);
  training.layer.bias.mutable_grad() = at::ones({4});
  const NonFinite norm = caught([&] { training.update.apply(); });
  CHECK(norm.finding() == "inf in the norm of the gradients in step 3");
  CHECK(training.update.grad_norm().item<double>() == kInfinity);

  Training many("{class: SGD}", OnNan::kStop, false);
  const NonFinite nan = caught([&] { many.bad_step(0); });
  CHECK(std::isnan(nan.value().value()));
  CHECK(nan.finding() == "nan in the loss in step 1");
}

TEST_CASE("the name of an update is the path of its config") {
  const TestLayer layer;
  const StepClock clock;
  Update update(config_of("gan: {generator_optimizer: SGD}").at("gan/generator_optimizer"),
                layer.parameters(), clock);
  CHECK(message_of([&] {
          update.step(layer.weight.sum() * std::nan(""));
        }).starts_with("gan/generator_optimizer: nan in the loss in step 1"));
}

TEST_CASE("what to do is one of three words") {
  CHECK(read_on_nan(config_of("{}")) == OnNan::kStop);
  CHECK(read_on_nan(config_of("on_nan: stop")) == OnNan::kStop);
  CHECK(read_on_nan(config_of("on_nan: skip")) == OnNan::kSkip);
  CHECK(read_on_nan(config_of("on_nan: ignore")) == OnNan::kIgnore);
  CHECK_THROWS_WITH_AS(read_on_nan(config_of("on_nan: warn")),
                       "test.yaml:1: on_nan: expected stop, skip or ignore, found \"warn\"",
                       UsageError);
}

constexpr at::ScalarType kTypes[] = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16};

TEST_CASE("every pattern of 16 bits is finite when PyTorch says so") {
  const at::Tensor patterns = at::arange(65536, at::kInt).to(at::kShort);
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16}) {
    const at::Tensor numbers = patterns.view(type);
    const at::Tensor expected = at::isfinite(numbers);
    int64_t wrong = 0;
    for (int64_t i = 0; i < numbers.numel(); ++i) {
      wrong += is_finite(numbers.narrow(0, i, 1)) != expected[i].item<bool>() ? 1 : 0;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("one number that is not finite is found at any place, the largest ones are finite") {
  for (const at::ScalarType type : kTypes) {
    CAPTURE(c10::toString(type));
    for (const int64_t count : {1, 2, 15, 16, 17, 70, 90}) {
      at::Tensor numbers = at::full({count}, type == at::kHalf ? 65504.0 : 3e38, type);
      numbers[0] = type == at::kHalf ? 6e-8 : 1e-40;  // a subnormal one
      numbers[count - 1] = -0.0;
      REQUIRE(is_finite(numbers));
      CHECK(first_non_finite(numbers) == 0);
      for (const double bad : {kInfinity, -kInfinity, std::nan("")}) {
        for (int64_t i = 0; i < count; ++i) {
          const at::Tensor with_bad = numbers.clone();
          with_bad[i] = bad;
          REQUIRE_FALSE(is_finite(with_bad));
          const double found = first_non_finite(with_bad);
          CHECK((std::isnan(bad) ? std::isnan(found) : found == bad));
        }
      }
    }
  }
}

TEST_CASE("a large tensor is looked at as well, also when its sum overflows") {
  for (const at::ScalarType type : kTypes) {
    CAPTURE(c10::toString(type));
    at::Tensor numbers = at::full({600, 1000}, type == at::kDouble ? 1e308 : 6e4, type);
    CHECK(is_finite(numbers));
    numbers[599][999] = kInfinity;
    CHECK_FALSE(is_finite(numbers));
    numbers[0][0] = -kInfinity;  // the sum of both is NaN
    CHECK_FALSE(is_finite(numbers));
    CHECK(is_finite(numbers.zero_()));
  }
}

TEST_CASE("only the tensor's own numbers count, whatever its strides") {
  at::Tensor whole = at::zeros({6, 8});
  whole[1][3] = std::nan("");
  CHECK_FALSE(is_finite(whole.t()));
  CHECK(is_finite(whole.narrow(0, 2, 4)));
  CHECK(is_finite(whole.narrow(1, 4, 4)));
  CHECK_FALSE(is_finite(whole.narrow(1, 3, 1)));
  CHECK_FALSE(is_finite(whole[1][3].expand({5})));
  CHECK(is_finite(at::zeros({0})));
  CHECK(is_finite(at::zeros({}).requires_grad_()));
}

}  // namespace non_finite_test
}  // namespace stepop
