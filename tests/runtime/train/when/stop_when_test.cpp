#include "runtime/train/when/stop_when.h"

#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cmath>

#include "runtime/core/value/yaml_reader.h"
#include "tests/message_of.h"

namespace stepop {
namespace stop_when_test {

constexpr int64_t kStepsPerEpoch = 23;
const std::string kMetric = "validation/eval_op/accuracy/accuracy";

Config config_of(const std::string& stop_when) {
  return Config(parse_yaml("stop_when: " + stop_when, {"test.yaml", 0}));
}

StopWhen stop_when(const std::string& yaml) { return {config_of(yaml), kStepsPerEpoch}; }

StopWhen best_accuracy(const std::string& more = "") {
  return stop_when("{metric: " + kMetric + ", patience: 5e, mode: max" + more + "}");
}

/// Tells the value of an epoch's end.
void observe(StopWhen& stop, int64_t epoch, double value) {
  const auto step = epoch * kStepsPerEpoch;
  stop.observe({{"validation/eval_op/loss", 0.5}, {kMetric, value}},
               {step, static_cast<double>(step) / 10});
}

std::string reason(const StopWhen& stop) { return stop.reason().value_or("none"); }

/// As a training after its first evaluation.
void check_observed(const StopWhen& stop, const LoggedNames& names) {
  for (const auto& [config, path, metric] : stop.watched_numbers()) {
    check_is_logged(config, path, metric, names);
  }
}

TEST_CASE("a training ends when the metric was not better for as long as the patience") {
  StopWhen stop = best_accuracy();
  CHECK(stop.is_given());
  CHECK(reason(stop) == "none");
  for (int epoch = 1; epoch <= 10; ++epoch) observe(stop, epoch, 0.9 + 0.00833 * epoch);
  for (int64_t epoch = 11; epoch <= 14; ++epoch) {
    observe(stop, epoch, 0.98);
    CHECK(reason(stop) == "none");
  }
  observe(stop, 15, 0.9833);  // as good is not better
  CHECK(reason(stop) == kMetric + " has not been better than 0.9833 (step 230) for 5 epochs");
}

TEST_CASE("a better value begins the patience anew, also at its end") {
  StopWhen stop = best_accuracy();
  observe(stop, 1, 0.5);
  observe(stop, 5, 0.4);
  observe(stop, 6, 0.51);
  CHECK(reason(stop) == "none");
  observe(stop, 10, 0.4);
  CHECK(reason(stop) == "none");
  // No value came at epoch 11, so only this one ends it.
  observe(stop, 12, 0.4);
  CHECK(reason(stop) == kMetric + " has not been better than 0.51 (step 138) for 6 epochs");
}

TEST_CASE("a patience without a unit is so many values in a row, as in Keras and Lightning") {
  const auto three = [] { return stop_when("{metric: " + kMetric + ", patience: 3, mode: max}"); };
  StopWhen stop = three();
  observe(stop, 1, 0.9);
  observe(stop, 2, 0.8);
  observe(stop, 3, 0.9);
  observe(stop, 3, 0.9);  // as a resume may
  CHECK_FALSE(stop.is_over());
  StopWhen resumed = three();
  resumed.load(stop.save());
  StopWhen of_first_version = three();  // which counted steps
  State state = stop.save();
  state.erase("not_better");
  of_first_version.load(state);
  for (StopWhen* each : {&stop, &resumed}) {
    observe(*each, 4, 0.7);
    CHECK(reason(*each) ==
          kMetric + " has not been better than 0.9 (step 23) for 3 values in a row");
  }
  CHECK(reason(of_first_version) ==
        kMetric + " has not been better than 0.9 (step 23) for 46 steps");
  StopWhen again = three();
  again.load(of_first_version.save());
  CHECK(reason(again) == reason(of_first_version));
  observe(stop, 5, 0.95);
  CHECK_FALSE(stop.is_over());
  CHECK(message_of([] { stop_when("{metric: a/b, patience: 2.5, mode: max}"); }) ==
        "test.yaml:1: stop_when/patience: expected a whole number of values, or a span such as 5e, "
        "found 2.5");
}

TEST_CASE("with mode min less is better, and a patience may be of steps or minutes") {
  StopWhen stop = stop_when("{metric: " + kMetric + ", patience: 100s, mode: min}");
  stop.observe({{kMetric, 2.0}}, {1000, 1});
  stop.observe({{kMetric, 3.0}}, {1099, 2});
  CHECK(reason(stop) == "none");
  stop.observe({{kMetric, 3.0}}, {1100, 3});
  CHECK(reason(stop) == kMetric + " has not been better than 2 (step 1,000) for 100 steps");
  stop.observe({{kMetric, 1.0}}, {1101, 3});
  CHECK(reason(stop) == "none");

  StopWhen minutes = stop_when("{metric: " + kMetric + ", patience: 30m, mode: min}");
  minutes.observe({{kMetric, 2.0}}, {1, 10});
  minutes.observe({{kMetric, 2.0}}, {5000, 39.9});
  CHECK(reason(minutes) == "none");
  minutes.observe({{kMetric, 2.0}}, {5001, 42.5});
  CHECK(reason(minutes) == kMetric + " has not been better than 2 (step 1) for 32.5 minutes");
}

TEST_CASE("a gain of min_delta and less is none") {
  StopWhen stop = best_accuracy(", min_delta: 0.25");
  observe(stop, 1, 0.5);
  observe(stop, 2, 0.75);
  observe(stop, 6, 0.7);
  CHECK(reason(stop) ==
        kMetric + " has not been better than 0.5 (step 23) by more than 0.25 for 5 epochs");
  observe(stop, 7, 0.76);
  CHECK(reason(stop) == "none");
  StopWhen loss = stop_when("{metric: " + kMetric + ", patience: 1s, mode: min, min_delta: 0.25}");
  observe(loss, 1, 0.5);
  observe(loss, 2, 0.25);
  CHECK(reason(loss) != "none");
  observe(loss, 3, 0.2);
  CHECK(reason(loss) == "none");
}

TEST_CASE("a NaN is never better, and only NaNs end a training too") {
  StopWhen stop = best_accuracy();
  observe(stop, 1, NAN);
  CHECK(reason(stop) == "none");
  observe(stop, 6, NAN);
  CHECK(reason(stop) == kMetric + " has been NaN since step 23, for 5 epochs");
  observe(stop, 7, 0.1);
  CHECK(reason(stop) == "none");
  observe(stop, 12, NAN);
  CHECK(reason(stop) == kMetric + " has not been better than 0.1 (step 161) for 5 epochs");
  observe(stop, 13, -INFINITY);
  CHECK(reason(stop) == kMetric + " has not been better than 0.1 (step 161) for 6 epochs");
}

TEST_CASE("events without the metric, and the same event twice, change nothing") {
  StopWhen stop = best_accuracy();
  observe(stop, 1, 0.5);
  observe(stop, 1, 0.5);
  stop.observe({{"train/train_op/loss", 0.5}}, {1000, 100});
  CHECK(reason(stop) == "none");
}

TEST_CASE("without stop_when nothing ends and nothing is kept") {
  StopWhen stop(Config(parse_yaml("a: 1", {"test.yaml", 0})), kStepsPerEpoch);
  CHECK_FALSE(stop.is_given());
  observe(stop, 1, 0.5);
  observe(stop, 100, 0.5);
  CHECK(reason(stop) == "none");
  CHECK(stop.save().empty());
  stop.load(best_accuracy().save());
  check_observed(stop, {{"a"}, {}});
  CHECK_FALSE(StopWhen(Config(parse_yaml("stop_when: null", {"test.yaml", 0})), 1).is_given());
}

TEST_CASE("a resumed training goes on with the best value and the time that it stood") {
  StopWhen before = best_accuracy();
  CHECK(before.save().empty());
  observe(before, 1, 0.9);
  observe(before, 4, 0.8);
  StopWhen after = best_accuracy();
  after.load(before.save());
  CHECK(reason(after) == "none");
  observe(after, 6, 0.85);
  CHECK(reason(after) == kMetric + " has not been better than 0.9 (step 23) for 5 epochs");
  StopWhen ended = best_accuracy();
  ended.load(after.save());
  CHECK(reason(ended) == reason(after));
  check_observed(ended, {{"another/name"}, {}});

  // With more patience the training continues, another metric or mode begins anew, an old
  // checkpoint has no state.
  StopWhen longer = stop_when("{metric: " + kMetric + ", patience: 6e, mode: max}");
  longer.load(after.save());
  CHECK(reason(longer) == "none");
  for (const char* other : {"{metric: validation/eval_op/loss, patience: 1, mode: max}",
                            "{metric: validation/eval_op/accuracy/accuracy, patience: 1, mode: "
                            "min}"}) {
    StopWhen anew = stop_when(other);
    anew.load(after.save());
    CHECK(anew.save().empty());
  }
  ended.load({});
  CHECK(ended.save().empty());
}

TEST_CASE("a state that was not written here is refused") {
  StopWhen stop = best_accuracy();
  observe(stop, 1, 0.9);
  State state = stop.save();
  state.erase("best");
  CHECK(message_of([&] { stop.load(state); }) == "stop_when.best: missing from the checkpoint");
  state = stop.save();
  state["step"] = at::zeros({2});
  CHECK(message_of([&] { stop.load(state); }) ==
        "stop_when.step: of another type or shape than was written");
}

TEST_CASE("a mistake in the config is placed and says what would be right") {
  const auto refused = [](const std::string& yaml) { return message_of([&] { stop_when(yaml); }); };
  CHECK(refused("5e") ==
        "test.yaml:1: stop_when: expected a map {metric: validation/eval_op/accuracy/accuracy, "
        "patience: 5e, mode: max}, found \"5e\"");
  CHECK(refused("{patience: 5e, mode: max}") ==
        "test.yaml:1: stop_when/metric: missing; give it in a config, or on the command line as "
        "--stop_when/metric VALUE");
  CHECK(refused("{metric: a/b, patience: 5e}") ==
        "test.yaml:1: stop_when/mode: missing: max when more is better, as of an accuracy; min "
        "when less is, as of a loss");
  CHECK(refused("{metric: a/b, patience: 5e, mode: maximum}") ==
        "test.yaml:1: stop_when/mode: expected max or min, found \"maximum\"");
  CHECK(refused("{metric: a/b, patience: long, mode: max}") ==
        "test.yaml:1: stop_when/patience: expected a number of steps (100), epochs (2e), minutes "
        "(10m), examples (10k examples), or a part of the training (10%, end), found \"long\"");
  CHECK(refused("{metric: a/b, patience: 0, mode: max}") ==
        "test.yaml:1: stop_when/patience: expected more than 0, found 0");
  CHECK(refused("{metric: a/b, patience: 1, mode: max, min_delta: -0.1}") ==
        "test.yaml:1: stop_when/min_delta: expected 0 or more, found -0.1");
  CHECK(refused("{metric: a/b, patience: 1, mode: max, min_delta: .nan}") ==
        "test.yaml:1: stop_when/min_delta: expected 0 or more, found nan");
  const Config misspelt = config_of("{metric: a/b, patience: 1, mode: max, min_detla: 1}");
  const StopWhen stop(misspelt, 1);
  CHECK(misspelt.unknown_keys() ==
        "test.yaml:1: unknown key \"stop_when/min_detla\": did you mean \"stop_when/min_delta\"?");
}

TEST_CASE("a metric that never came is a mistake of the config, with the nearest name") {
  const auto problem = [](const StopWhen& stop, const std::vector<std::string>& known,
                          const std::vector<std::string>& to_come = {}) {
    return message_of([&] { check_observed(stop, {known, to_come}); });
  };
  const StopWhen stop =
      stop_when("{metric: validation/eval_op/acuracy/accuracy, patience: 1, mode: max}");
  const std::string begin =
      "test.yaml:1: stop_when/metric: no log and no evaluation gives a number "
      "\"validation/eval_op/acuracy/accuracy\"";
  CHECK(problem(stop, {"validation/eval_op/loss", kMetric}) ==
        begin + "; did you mean \"" + kMetric + "\"?");
  CHECK(problem(stop, {"a/b", "c/d"}) == begin + "; there are: a/b, c/d");
  std::vector<std::string> many;
  for (int i = 0; i < 13; ++i) many.push_back("a/" + std::to_string(i));
  CHECK(problem(stop, many) == begin +
                                   "; there are: a/0, a/1, a/2, a/3, a/4, a/5, a/6, a/7, a/8, a/9 "
                                   "and 3 more");
  // An op whose numbers may still come, and an evaluation that gave no numbers at all.
  CHECK(problem(stop, {"a/b"}, {"validation/eval_op"}) == "no error");
  CHECK(problem(stop, {}) == "no error");
  StopWhen seen = best_accuracy();
  observe(seen, 1, 0.5);
  CHECK(problem(seen, {"a/b"}) == "no error");
}

}  // namespace stop_when_test
}  // namespace stepop
