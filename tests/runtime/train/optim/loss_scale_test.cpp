// Losses that are scaled, as with `precision: float16`.

#include "runtime/train/optim/loss_scale.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>
#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "runtime/train/optim/update.h"
#include "tests/message_of.h"
#include "tests/runtime/train/loop/trainer.h"
#include "tests/runtime/train/optim/networks.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace loss_scale_test {

using namespace test_networks;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// An update of a layer, with or without a scale.
struct Training {
  explicit Training(const std::string& text, std::optional<LossScale::Settings> scale,
                    OnNan on_nan = OnNan::kStop, bool on_device = false)
      : update(config_of(text), layer.parameters(), clock, on_nan, on_device) {
    if (scale) update.scale_losses(*scale);
  }

  /// A step; the gradients are multiplied by `factor`.
  void step(double factor = 1) {
    const at::Tensor loss = layer.forward(test_input(8, clock.global_step)).square().mean();
    // A loss that is finite, with gradients as large as asked.
    update.step(factor == 1 ? loss : loss * factor - loss.detach() * factor);
    ++clock.global_step;
  }

  bool equals(const Training& other) const {
    return at::equal(layer.weight, other.layer.weight) && at::equal(layer.bias, other.layer.bias);
  }

  double scale() const { return update.loss_scale().item<double>(); }

  TestLayer layer;
  StepClock clock;
  Update update;
};

TEST_CASE("a scale that is a power of two changes no bit") {
  for (const char* text : {"{class: SGD, lr: 0.1, momentum: 0.9}", "{class: AdamW, lr: 0.1}",
                           "{class: Adam, lr: 0.1, clip_norm: 0.5, clip_value: 0.1}"}) {
    for (const bool on_device : {false, true}) {
      CAPTURE(text);
      CAPTURE(on_device);
      Training plain(text, std::nullopt);
      Training scaled(text, LossScale::Settings{}, OnNan::kStop, on_device);
      Training grows(text, LossScale::Settings{.init_scale = 1, .growth_interval = 3},
                     OnNan::kIgnore, on_device);
      for (int i = 0; i < 10; ++i) {
        plain.step();
        scaled.step();
        grows.step();
      }
      CHECK(plain.equals(scaled));
      CHECK(plain.equals(grows));
      CHECK(plain.update.count() == scaled.update.count());
      CHECK(scaled.scale() == 65536);
      CHECK(grows.scale() == 8);
    }
  }
}

TEST_CASE("accumulated gradients have one scale, and pass through a checkpoint") {
  const std::string text = "{class: Adam, lr: 0.1}";
  Training plain(text, std::nullopt);
  Training scaled(text, LossScale::Settings{});
  const auto half_steps = [](Training& training) {
    training.clock.micro_batches = 2;
    for (training.clock.micro_batch = 0; training.clock.micro_batch < 2;
         ++training.clock.micro_batch) {
      training.update.step(
          training.layer.forward(test_input(8, training.clock.micro_batch)).square().mean());
      State saved;
      for (const auto& [name, tensor] : training.update.state()) saved[name] = tensor.clone();
      training.update.load_state(saved);
    }
    training.clock.micro_batch = 0;
  };
  half_steps(plain);
  half_steps(scaled);
  CHECK(scaled.update.count() == 1);
  CHECK(plain.equals(scaled));
}

// The scale and what is left out, as torch.amp.GradScaler(growth_interval=3) has them.
TEST_CASE("infinite gradients leave an update out and halve the scale, in silence") {
  for (const OnNan on_nan : {OnNan::kStop, OnNan::kSkip, OnNan::kIgnore}) {
    for (const bool on_device : {false, true}) {
      CAPTURE(on_device);
      Training training("{class: SGD, lr: 1e-30}", LossScale::Settings{1024, 3}, on_nan, on_device);
      std::vector<double> scales;
      std::vector<int64_t> counts;
      for (const double factor : {1., 1e38, 1., 1., 1., 1e38, 1e38, 1.}) {
        const at::Tensor before = training.layer.weight.detach().clone();
        training.step(factor);
        CHECK(training.update.read_non_finite() == "");
        if (factor > 1) CHECK(at::equal(before, training.layer.weight));
        scales.push_back(training.scale());
        if (on_nan != OnNan::kIgnore) counts.push_back(training.update.count());
      }
      CHECK(scales == std::vector<double>{1024, 512, 512, 512, 1024, 512, 256, 256});
      if (on_nan == OnNan::kIgnore) continue;
      CHECK(counts == std::vector<int64_t>{1, 1, 2, 3, 4, 4, 4, 5});
      CHECK(training.update.skipped() == 3);
    }
  }
}

TEST_CASE("gradients that no scale makes finite are what on_nan says") {
  for (const bool on_device : {false, true}) {
    CAPTURE(on_device);
    Training stops("{class: SGD, lr: 0.1}", LossScale::Settings{4, 100}, OnNan::kStop, on_device);
    Training skips("{class: SGD, lr: 0.1}", LossScale::Settings{4, 100}, OnNan::kSkip, on_device);
    const auto bad_step = [](Training& training) {
      // 0 times an infinite slope.
      const at::Tensor zero = (training.layer.weight * 0).sum();
      training.update.step(zero.sqrt());
      ++training.clock.global_step;
      return training.update.read_non_finite();
    };
    const at::Tensor before = stops.layer.weight.detach().clone();
    CHECK(bad_step(stops) == "");  // 2
    CHECK(bad_step(stops) == "");  // 1
    const std::string message = message_of([&] { bad_step(stops); });
    CHECK(message.find(on_device ? "optimizer: nan or inf in the loss or a gradient in step 3"
                                 : "optimizer: nan in the gradient of fc.weight in step 3") == 0);
    CHECK(at::equal(before, stops.layer.weight));
    for (int i = 0; i < 2; ++i) CHECK(bad_step(skips) == "");
    CHECK(bad_step(skips).find("the update was left out") != std::string::npos);
    CHECK(skips.update.skipped() == 3);
  }
  Training training("{class: SGD, lr: 0.1}", LossScale::Settings{});
  const at::Tensor loss = training.layer.weight.sum() * kInfinity;
  CHECK(message_of([&] { training.update.step(loss); }).find(" in the loss in step 1") !=
        std::string::npos);
}

TEST_CASE("a state has the scale, and one of another precision none") {
  const std::string text = "{class: SGD, lr: 0.1}";
  Training scaled(text, LossScale::Settings{8, 2});
  for (int i = 0; i < 3; ++i) scaled.step();
  State saved;
  for (const auto& [name, tensor] : scaled.update.state()) saved[name] = tensor.clone();
  Training resumed(text, LossScale::Settings{8, 2});
  resumed.update.load_state(saved);
  CHECK(resumed.scale() == 16);
  resumed.step();
  CHECK(resumed.scale() == 32);  // one of the two updates was made before

  Training plain(text, std::nullopt);
  plain.update.load_state(saved);
  CHECK(plain.update.count() == 3);
  CHECK_FALSE(plain.update.loss_scale().defined());
  Training later(text, LossScale::Settings{8, 2});
  later.update.load_state(plain.update.state());
  CHECK(later.scale() == 8);
  saved["loss_scale"] = at::ones({2});
  CHECK(message_of([&] { later.update.load_state(saved); }).find("\"loss_scale\" is not one") !=
        std::string::npos);
}

TEST_CASE("a run in float16 that was stopped ends with the bits of one that was not") {
  const std::string yaml = trainer_config(
      "num_steps: 6\nlog_freq: 1\nprecision: float16\nckpt_freq: 1\ncheckpoints: {keep_last: 9}\n"
      "loss_scale: {init_scale: 1e+30, growth_interval: 1}");
  TestRun whole(yaml);
  whole.train();
  const State end = whole.checkpoint(6);
  CHECK(end.at("optimizer.skipped").item<int64_t>() > 0);
  CHECK(end.at("optimizer.count").item<int64_t>() + end.at("optimizer.skipped").item<int64_t>() ==
        6);
  CHECK(end.at("optimizer.loss_scale").item<double>() < 1e30);
  TestRun rest(yaml, whole, 3);
  rest.train();
  CHECK(differences(end, rest.checkpoint(6)) == "");
}

TEST_CASE("a scale that cannot be is told") {
  const auto message = [](const std::string& more) {
    return message_of([&] { TestRun run(trainer_config("num_steps: 1\n" + more)); });
  };
  CHECK(message("precision: float16\nloss_scale: {init_scale: 0.5}")
            .find("loss_scale/init_scale: expected 1 or more, found 0.5") != std::string::npos);
  CHECK(message("precision: float16\nloss_scale: {growth_interval: 0}")
            .find("loss_scale/growth_interval: expected 1 or more, found 0") != std::string::npos);
  CHECK(message("precision: bfloat16\nloss_scale: {init_scale: 2}")
            .find("loss_scale: losses are scaled with precision: float16 alone") !=
        std::string::npos);
}

}  // namespace loss_scale_test
}  // namespace stepop
