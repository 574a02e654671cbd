#include "runtime/train/optim/schedule.h"

#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cmath>
#include <numbers>
#include <string>
#include <thread>
#include <vector>

#include "runtime/core/formats/safetensors.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/core/value/yaml_writer.h"
#include "runtime/train/optim/metric_schedule.h"
#include "runtime/train/when/training_length.h"
#include "tests/message_of.h"
#include "tests/places.h"

namespace stepop {
namespace schedule_test {

Config config_of(const std::string& text) { return Config(parse_yaml(text, {"test.yaml", 0})); }

/// The schedule that a config names at `lr`.
Scheduled schedule(const std::string& text) { return {config_of("lr: " + text), "lr"}; }

void refused(const std::string& text, const std::string& message) {
  CHECK_THROWS_WITH_AS(schedule(text), ("test.yaml:1: " + message).c_str(), UsageError);
}

TEST_CASE("schedules give the values of PyTorch's schedulers") {
  const SafetensorsFile file =
      load_safetensors(STEPOP_SOURCE_DIR "/tests/data/optim/schedules.safetensors");
  REQUIRE(file.metadata.size() == 32);
  for (const auto& [name, text] : file.metadata) {
    const Scheduled ours = schedule(text);
    const at::Tensor& theirs = file.tensors.at(name);
    REQUIRE(theirs.numel() == 60);
    for (int64_t step = 0; step < theirs.numel(); ++step) {
      INFO(name, " at step ", step);
      CHECK(ours.at(step) == doctest::Approx(theirs[step].item<double>()).epsilon(1e-12));
    }
  }
}

TEST_CASE("a plateau gives the values of PyTorch's, also from its state on") {
  const SafetensorsFile file =
      load_safetensors(STEPOP_SOURCE_DIR "/tests/data/optim/plateaus.safetensors");
  const at::Tensor& metric = file.tensors.at("metric");
  REQUIRE(file.metadata.size() == 3);
  for (const auto& [name, text] : file.metadata) {
    MetricSchedules plateaus;
    MetricSchedules later;
    const auto make = [&, of = text](MetricSchedules& schedules) {
      const MetricSchedules::Scope scope(schedules);
      return schedule(of);
    };
    const Scheduled ours = make(plateaus);
    const Scheduled resumed = make(later);
    CHECK(ours.at(0) == 0.5);
    size_t falls = 0;
    for (int64_t step = 0; step < metric.numel(); ++step) {
      INFO(name, " at step ", step);
      if (step == 30) later.load(plateaus.save());
      const OrderedMap<double> scalars = {{"m", metric[step].item<double>()}, {"n", -1}};
      falls += plateaus.observe(step, scalars).size();
      CHECK(plateaus.observe(step, scalars).empty());  // the same event once more
      const double expected = file.tensors.at(name)[step].item<double>();
      CHECK(ours.at(step) == doctest::Approx(expected).epsilon(1e-12));
      if (step < 30) continue;
      later.observe(step, scalars);
      CHECK(resumed.at(step) == ours.at(step));
    }
    CHECK(falls > 2);
  }
}

TEST_CASE("a plateau says why it falls, and where it cannot be") {
  MetricSchedules plateaus;
  const MetricSchedules::Scope scope(plateaus);
  const Scheduled lr = schedule("{class: plateau, from: 0.5, metric: m, patience: 0}");
  plateaus.observe(1, {{"m", 2}});
  CHECK(plateaus.observe(2, {{"m", 3}}) ==
        std::vector<std::string>{"lr falls to 0.05: m is 3, and no better than before"});
  CHECK(lr.at(7) == 0.05);
  CHECK(message_of([&] {
          plateaus.load({{"lr", at::zeros({2})}});
        }) == "schedules.lr: not the state of a plateau");
  refused("{class: plateau, from: 0.5, metric: m, factor: 1}",
          "lr/factor: expected a number from 0 to below 1, found 1");
  refused("{class: plateau, from: 0.5, metric: m, mode: low}",
          "lr/mode: expected max or min, found \"low\"");
  std::string outside;
  std::thread([&] {
    outside = message_of([] { schedule("{class: plateau, from: 1, metric: m}"); });
  }).join();
  CHECK(outside.starts_with("test.yaml:1: lr: a schedule that follows a metric works in what"));
}

/// The numbers of a plateau from 1, one after each value of its metric.
std::vector<double> plateau_of(const std::string& more, const std::vector<double>& metric) {
  MetricSchedules plateaus;
  const MetricSchedules::Scope scope(plateaus);
  const Scheduled lr =
      schedule("{class: plateau, from: 1.0, metric: m, factor: 0.1, " + more + "}");
  std::vector<double> numbers;
  for (size_t i = 0; i < metric.size(); ++i) {
    plateaus.observe(static_cast<int64_t>(i), {{"m", metric[i]}});
    numbers.push_back(lr.at(0));
  }
  return numbers;
}

TEST_CASE(
    "a plateau's relative threshold is of the size of the best value, also below 0 and at 0") {
  const std::vector<double> falls = {1, 1, 0.1, 0.1};
  const double nan = std::nan("");
  for (const double value : {1.0, -1.0, 0.0, -1e9}) {
    CAPTURE(value);
    for (const std::string mode : {"min", "max"}) {
      CHECK(plateau_of("patience: 1, mode: " + mode, {value, value, value, value}) == falls);
    }
  }
  const std::string strict = "threshold: 0.1, patience: 0, mode: ";
  const auto fell = [&](const std::string& mode, double before, double after) {
    return plateau_of(strict + mode, {before, after}).back() < 1;
  };
  CHECK(fell("min", -1, -0.95));
  CHECK(fell("min", -1, -1.05));
  CHECK_FALSE(fell("min", -1, -1.15));
  CHECK(fell("max", -1, -1.05));
  CHECK(fell("max", -1, -0.95));
  CHECK_FALSE(fell("max", -1, -0.85));
  CHECK_FALSE(fell("min", 0, -1e-12));
  CHECK_FALSE(fell("max", 0, 1e-12));
  CHECK(fell("min", 0, 0));
  // NaN is never better, and never the best.
  CHECK(plateau_of("patience: 1", {nan, -1, -2, -3}) == std::vector<double>{1, 1, 1, 1});
  CHECK(plateau_of("patience: 1", {-1, nan, -2, nan}) == std::vector<double>{1, 1, 1, 1});
  CHECK(plateau_of("patience: 1", {-1, -2, nan, nan}) == std::vector<double>{1, 1, 1, 0.1});
}

TEST_CASE("schedules that lead nowhere are refused") {
  refused("{class: exponential, from: 1, gamma: 0.5, to: 0.1}",
          "lr: expected \"gamma\", or \"to\" and \"steps\"");
  refused("{class: exponential, from: 1, to: 0, steps: 5}",
          "lr/to: from 1 to 0: no factor leads there; both have to be above 0, or both below");
  refused("{class: polynomial, from: 1, power: 0, steps: 5}",
          "lr/power: expected more than 0, found 0");
  refused("{class: one_cycle, max: 1, steps: 10, pct_start: 1}",
          "lr/pct_start: the rise has to be one step or more, and to end before the last step");
  refused("{class: one_cycle, max: 1, steps: 10, anneal: sine}",
          "lr/anneal: expected cos or linear, found \"sine\"");
  const Scheduled fall = schedule("{class: exponential, from: 1, to: 0.01, steps: 2}");
  CHECK(fall.at(1) == doctest::Approx(0.1));
  CHECK(fall.at(2) == 0.01);
  CHECK(fall.at(1'000'000) == 0.01);
  const Scheduled again =
      schedule("{class: cosine_restarts, from: 2, steps: 4, longer: 2, lower: 0.5}");
  CHECK(again.at(4) == 1);     // after 4
  CHECK(again.at(12) == 0.5);  // and after 8
  CHECK(again.at(8) == doctest::Approx(0.5));
  CHECK(again.at(1'000'000'000'000'000) >= 0);
}

TEST_CASE("a line rises from its start and stays at its end") {
  const Scheduled ramp = schedule("{class: linear, from: 0, to: 2, start: 100, steps: 50}");
  CHECK(ramp.at(0) == 0);
  CHECK(ramp.at(100) == 0);
  CHECK(ramp.at(125) == 1);
  CHECK(ramp.at(149) == doctest::Approx(1.96));
  CHECK(ramp.at(150) == 2);
  CHECK(ramp.at(1'000'000'000'000) == 2);
}

TEST_CASE("a warm-up begins at 0 and stays at its end") {
  const Scheduled warmup = schedule("{class: warmup, to: 0.3, steps: 3}");
  CHECK(warmup.at(0) == 0);
  CHECK(warmup.at(1) == doctest::Approx(0.1));
  CHECK(warmup.at(3) == 0.3);
  CHECK(warmup.at(1000) == 0.3);
}

TEST_CASE("a cosine falls to 0 and stays there, unlike PyTorch's, which rises again") {
  const Scheduled cosine = schedule("{class: cosine, from: 2, steps: 8}");
  for (int64_t step = 0; step <= 8; ++step) {
    CHECK(cosine.at(step) ==
          doctest::Approx(1 + std::cos(std::numbers::pi * static_cast<double>(step) / 8)));
  }
  CHECK(cosine.at(8) == 0);
  CHECK(cosine.at(100) == 0);
}

TEST_CASE("a cosine that starts later stands before its start, so that a weight is delayed") {
  const Scheduled delayed = schedule("{class: cosine, from: 0, to: 2, start: 10, steps: 4}");
  CHECK(delayed.at(0) == 0);
  CHECK(delayed.at(10) == 0);
  CHECK(delayed.at(11) == doctest::Approx(1 - std::sqrt(0.5)));
  CHECK(delayed.at(12) == doctest::Approx(1));
  CHECK(delayed.at(14) == 2);
  CHECK(delayed.at(1000) == 2);
}

TEST_CASE("a decay by a power law is no decay of averages that last for ever") {
  refused("{class: power_law, max: 1}", "lr/max: expected a number from 0 to below 1, found 1");
}

TEST_CASE("the steps of a chain's part count from the part's start") {
  const Scheduled chain = schedule(
      "{class: chain, parts: [{schedule: {class: warmup, to: 1, steps: 4}, steps: 4},"
      " {schedule: 7, steps: 2}, {schedule: {class: step, from: 1, factor: 0.5, every: 2}}]}");
  const std::vector<double> expected = {0, 0.25, 0.5, 0.75, 7, 7, 1, 1, 0.5, 0.5, 0.25};
  for (size_t step = 0; step < expected.size(); ++step) {
    CHECK(chain.at(static_cast<int64_t>(step)) == expected[step]);
  }
}

TEST_CASE("a number is a constant, and a missing key its fallback") {
  CHECK(schedule("1e-3").at(12) == 1e-3);
  CHECK(schedule("2").at(0) == 2);
  CHECK(Scheduled(config_of("{}"), "lr", 0.25).at(3) == 0.25);
  CHECK(Scheduled(config_of("lr: null"), "lr", 0.25).at(3) == 0.25);
  CHECK(Scheduled(config_of("lr: 1"), "lr", 0.25).at(3) == 1);
}

TEST_CASE("what is no number and no schedule is refused with its place") {
  refused("fast",
          "lr: expected a number or a schedule (chain, constant, cosine, cosine_restarts, "
          "exponential, inverse_sqrt, linear, one_cycle, plateau, polynomial, power_law, ramp, "
          "step, warmup), found "
          "\"fast\"");
  refused("true",
          "lr: expected a number or a schedule (chain, constant, cosine, cosine_restarts, "
          "exponential, inverse_sqrt, linear, one_cycle, plateau, polynomial, power_law, ramp, "
          "step, warmup), found "
          "true");
  refused("{class: cosin, from: 1}",
          "lr/class: unknown schedule \"cosin\": did you mean \"cosine\"? Known are: cosine, "
          "chain, constant, ramp, step, linear, warmup, plateau, one_cycle, polynomial, power_law, "
          "exponential, cosine_restarts, inverse_sqrt");
  CHECK_THROWS_WITH_AS(
      Scheduled(config_of("{}"), "lr"),
      "test.yaml:1: lr: missing; give it in a config, or on the command line as --lr VALUE",
      UsageError);
}

TEST_CASE("bad values of a schedule are refused with their place") {
  refused("{class: cosine, from: 1, steps: 0}", "lr/steps: expected 1 or more, found 0");
  refused("{class: cosine, from: 1}",
          "lr/steps: missing; give it in a config, or on the command line as --lr/steps VALUE");
  refused("{class: linear, from: 1, to: 0, steps: -3}", "lr/steps: expected 1 or more, found -3");
  refused("{class: linear, from: 1, to: 0, steps: 3, start: -1}",
          "lr/start: expected 0 or more, found -1");
  refused("{class: warmup, to: high, steps: 3}", "lr/to: expected a number, found \"high\"");
  refused("{class: step, from: 1}", "lr: expected \"every\" or \"at\", found neither");
  refused("{class: step, from: 1, every: 2, at: [1]}",
          "lr: expected \"every\" or \"at\", found both");
  refused("{class: step, from: 1, every: 0}", "lr/every: expected 1 or more, found 0");
  refused("{class: step, from: 1, at: [5, 3]}",
          "lr/at: expected steps in ascending order, found 3 after 5");
  refused("{class: step, from: 1, at: [-5]}", "lr/at/0: expected 0 or more, found -5");
  refused("{class: chain, parts: []}",
          "lr/parts: expected a list of {schedule: ..., steps: N}, found []");
  refused("{class: chain}",
          "lr/parts: expected a list of {schedule: ..., steps: N}, found nothing");
  refused("{class: chain, parts: [{schedule: 1}, {schedule: 2}]}",
          "lr/parts/0/steps: missing; give it in a config, or on the command line as "
          "--lr/parts/0/steps VALUE");
  refused("{class: chain, parts: [{schedule: 1, steps: 3}]}",
          "lr/parts/0/steps: the last part has no end: remove its steps");
}

TEST_CASE("a class of torch.optim.lr_scheduler that is not here is answered with what serves") {
  refused("{class: SequentialLR}",
          "lr/class: unknown schedule \"SequentialLR\": `chain` puts schedules one after another, "
          "`ramp` multiplies one by a warm-up");
  refused("{class: CyclicLR, base_lr: 0.1, max_lr: 1, mode: square}",
          "lr/mode: expected triangular, triangular2 or exp_range, found \"square\"");
}

TEST_CASE("restarts, their weights and lengths have to fit one another") {
  refused("{class: step, from: 1, at: [5], restarts: [9], weights: [1, 2]}",
          "lr/weights: expected 1 number, one for each of restarts, found 2");
  refused("{class: step, from: 1, at: [5], weights: [1]}",
          "lr/weights: expected 0 numbers, one for each of restarts, found 1");
  refused("{class: step, from: 1, at: [5], restarts: [9, 9]}",
          "lr/restarts: expected steps in ascending order, found 9 after 9");
  refused("{class: cosine_restarts, from: 1, steps: [5], restarts: [9]}",
          "lr/steps: expected a length of 1 or more, or 2 of them: of the fall from step 0 on, and "
          "of that after each of restarts, found [5]");
  refused("{class: cosine_restarts, from: 1, steps: 5, longer: 2, restarts: [9]}",
          "lr/longer: found together with restarts, whose steps and weights say it");
  refused("{class: ramp, schedule: 1, steps: 5, from: 2}",
          "lr/from: expected a number from 0 to 1, found 2");
  const Scheduled one_length =
      schedule("{class: cosine_restarts, from: 1, steps: 4, restarts: [10]}");
  CHECK(one_length.at(4) == 0);
  CHECK(one_length.at(9) == 0);  // until the restart
  CHECK(one_length.at(10) == 1);
  CHECK(one_length.at(14) == 0);
  CHECK(schedule("{class: ramp, schedule: 0.5, steps: 4}").at(0) == 0);
  CHECK(schedule("{class: ramp, schedule: 0.5, steps: 4}").at(4) == 0.5);
}

/// Compares the schedules of `path` in each step of as many epochs as there are values.
void check_epochs(const std::string& path, size_t cases) {
  const SafetensorsFile file = load_safetensors(STEPOP_SOURCE_DIR "/tests/data/" + path);
  REQUIRE(file.metadata.size() == cases);
  constexpr int64_t kEpoch = 7;
  for (const auto& [name, text] : file.metadata) {
    const at::Tensor& theirs = file.tensors.at(name);
    const LengthScope length([&] { return TrainingLength{kEpoch, theirs.numel() * kEpoch}; });
    const Scheduled ours = schedule(text);
    for (int64_t step = 0; step < theirs.numel() * kEpoch; ++step) {
      INFO(name, " at step ", step);
      CHECK(ours.at(step) == doctest::Approx(theirs[step / kEpoch].item<double>()).epsilon(1e-12));
    }
  }
}

TEST_CASE("with per: epoch, rates and weights are NectarGAN's in every step") {
  check_epochs("pix2pix/rates.safetensors", 4);
}

TEST_CASE("with per: epoch, schedules are PyTorch's that are stepped once an epoch") {
  check_epochs("optim/per_epoch.safetensors", 16);
}

TEST_CASE("with per: epoch, the decay of averages counts epochs") {
  const LengthScope length([] { return TrainingLength{10, 1000}; });
  const Scheduled steps =
      schedule("{class: power_law, update_after_step: 2, update_every: 3, inv_gamma: 2}");
  const Scheduled epochs = schedule(
      "{class: power_law, update_after_step: 2e, update_every: 3, inv_gamma: 2, per: epoch}");
  for (int64_t epoch = 0; epoch < 100; ++epoch) {
    CHECK(epochs.at(10 * epoch + 4) == doctest::Approx(steps.at(epoch)).epsilon(1e-12));
  }
}

TEST_CASE("what a schedule takes for lengths that are left out is written down with its unit") {
  const LengthScope length([] { return TrainingLength{10, 1000}; });
  const auto written = [](const std::string& text) {
    const Config config = config_of("lr: " + text);
    const Scheduled made(config, "lr");
    for (const TakenDefault& taken : config.taken_defaults()) {
      if (taken.path == "lr/total_iters") return flow_yaml(taken.values.at(0));
    }
    return std::string();
  };
  CHECK(written("{class: LinearLR, from: 1, per: epoch}") == "\"5e\"");
  CHECK(written("{class: LinearLR, from: 1}") == "5");
}

TEST_CASE("with per: epoch, a rise of less than an epoch is refused") {
  const LengthScope length([] { return TrainingLength{10, 1000}; });
  refused("{class: one_cycle, max: 1, steps: 3e, per: epoch}",
          "lr/pct_start: the rise has to be one epoch or more, and to end before the last epoch");
}

TEST_CASE("with per: epoch, lengths in steps that are shorter than an epoch are collected") {
  const LengthScope length([] { return TrainingLength{100, 1000}; });
  std::vector<BuiltSchedule> built;
  {
    const ScheduleCollector collector(built);
    schedule("{class: StepLR, from: 1, step_size: 30, per: epoch}");
    schedule("{class: StepLR, from: 1, step_size: 30}");
    schedule("{class: MultiStepLR, from: 1, milestones: [0, 30e, 80, 100], per: epoch}");
  }
  REQUIRE(built.size() == 3);
  REQUIRE(built[0].short_lengths.size() == 1);
  CHECK(built[0].short_lengths[0].place == "lr/step_size");
  CHECK(built[0].short_lengths[0].steps == 30);
  CHECK(built[1].short_lengths.empty());
  REQUIRE(built[2].short_lengths.size() == 1);
  CHECK(built[2].short_lengths[0].place == "lr/milestones/2");
}

TEST_CASE("with per: epoch, each schedule has the number of the epoch's first step") {
  const LengthScope length([] { return TrainingLength{10, 100}; });
  const Scheduled steps = schedule("{class: cosine, from: 1, steps: 35, warmup: 15}");
  const Scheduled epochs = schedule("{class: cosine, from: 1, steps: 35, warmup: 15, per: epoch}");
  for (int64_t step = 0; step < 100; ++step) CHECK(epochs.at(step) == steps.at(step / 10 * 10));
  CHECK(*steps.fallen_after() == 50);
  CHECK(*epochs.fallen_after() == 50);
  CHECK(*schedule("{class: cosine, from: 1, steps: 41, per: epoch}").fallen_after() == 50);
  // A part that begins within an epoch changes with the training's epochs.
  const Scheduled chain = schedule(
      "{class: chain, parts: [{schedule: 1, steps: 5}, {schedule: {class: linear, from: 1, to: 0, "
      "steps: 10, per: epoch}}]}");
  CHECK(chain.at(9) == 1);
  CHECK(chain.at(10) == 0.5);
  CHECK(chain.at(19) == 0.5);
  CHECK(chain.at(20) == 0);
  refused("{class: linear, from: 1, to: 0, steps: 10, per: batch}",
          "lr/per: expected step or epoch, found \"batch\"");
  refused("{class: plateau, from: 1, metric: m, per: epoch}",
          "lr/per: a plateau changes when its metric is logged: remove it");
}

TEST_CASE("a schedule per epoch needs a training whose length is known") {
  refused("{class: linear, from: 1, to: 0, steps: 10, per: epoch}",
          "lr/per: expected a number of steps, found \"epoch\": how long the training is is not "
          "known here");
}

TEST_CASE("a misspelt key inside of a schedule is found") {
  const Config config = config_of(
      "lr: {class: chain, parts: [{schedule: {class: warmup, to: 1, steps: 4, form: 1}, steps: 4},"
      " {schedule: 7}]}");
  CHECK_NOTHROW(Scheduled(config, "lr"));
  CHECK(config.unknown_keys() ==
        "test.yaml:1: unknown key \"lr/parts/0/schedule/form\": did you mean "
        "\"lr/parts/0/schedule/from\"?");
}

}  // namespace schedule_test
}  // namespace stepop
