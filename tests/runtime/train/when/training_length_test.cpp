// Lengths in epochs and in parts of the training, and schedules that have them.
#include "runtime/train/when/training_length.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "runtime/core/value/yaml_reader.h"
#include "runtime/train/optim/schedule.h"
#include "runtime/train/when/duration.h"
#include "runtime/train/when/trigger.h"
#include "tests/message_of.h"

namespace stepop {
namespace training_length_test {

Config config_of(const std::string& value) {
  return Config(parse_yaml("key: " + value, {"test.yaml", 0}));
}

/// In a training of ten epochs of 23 steps.
const TrainingLength kLength{.steps_per_epoch = 23, .num_steps = 230, .examples_per_step = 64};

int64_t length(const std::string& value, int64_t least = 1, int64_t begin = 0) {
  const LengthScope scope([] { return kLength; });
  return read_length(config_of(value), "key", least, begin);
}

Scheduled schedule(const std::string& value) {
  const LengthScope scope([] { return kLength; });
  return {config_of(value), "key"};
}

TEST_CASE("a length is in steps, epochs, a part of the training, or up to its end") {
  CHECK(length("100") == 100);
  CHECK(length("100s") == 100);
  CHECK(length("2e") == 46);
  CHECK(length("0.5e") == 12);
  CHECK(length("10%") == 23);
  CHECK(length("end") == 230);
  CHECK(length("end", 1, 30) == 200);
  CHECK(length("end", 1, 500) == 1);  // nothing is left
  CHECK(length("0.01%") == 1);
  CHECK(length("0%", 0) == 0);
  CHECK(length("640 examples") == 10);
  CHECK(length("641 examples") == 11);
  CHECK(length("10k examples") == 157);
  CHECK(length("1.5M examples") == 23438);
}

TEST_CASE("what is no length is refused with its place") {
  const auto refused = [](const std::string& value) { return message_of([&] { length(value); }); };
  CHECK(refused("0") == "test.yaml:1: key: expected 1 or more, found 0");
  CHECK(refused("0e") == "test.yaml:1: key: expected more than 0, found \"0e\"");
  CHECK(refused("0 examples") == "test.yaml:1: key: expected more than 0, found \"0 examples\"");
  CHECK(refused("5G examples").find("examples (10k examples)") != std::string::npos);
  CHECK(refused("5m") ==
        "test.yaml:1: key: expected steps (100) or epochs (2e), found minutes: a training step has "
        "no fixed length");
  CHECK(refused("ending") ==
        "test.yaml:1: key: expected a number of steps (100), epochs (2e), minutes (10m), examples "
        "(10k examples), or a part of the training (10%, end), found \"ending\"");
  CHECK(message_of([] { read_length(config_of("10%"), "key", 1); }) ==
        "test.yaml:1: key: expected a number of steps, found \"10%\": how long the training is "
        "is not known here");
}

TEST_CASE("the length of a training is found for the first length that depends on it alone") {
  int calls = 0;
  const LengthScope scope([&] {
    ++calls;
    return kLength;
  });
  CHECK(read_length(config_of("7"), "key", 1) == 7);
  CHECK_FALSE(scope.used());
  CHECK(read_length(config_of("7e"), "key", 1) == 161);
  CHECK(read_length(config_of("end"), "key", 1) == 230);
  CHECK(calls == 1);
  CHECK(scope.used() == kLength);
}

TEST_CASE("a schedule that lasts to the end ends with the training, wherever it begins") {
  for (const char* text :
       {"{class: cosine, from: 1, to: 0.5, steps: end}",
        "{class: cosine, from: 1, to: 0.5, steps: end, start: 2e}",
        "{class: cosine, from: 1, to: 0.5, steps: end, warmup: 10%}",
        "{class: linear, from: 1, to: 0.5, steps: end, start: 50%, warmup: 20}",
        "{class: polynomial, from: 1, to: 0.5, steps: end}",
        "{class: exponential, from: 1, to: 0.5, steps: end, warmup: 1e}",
        "{class: ramp, steps: 5%, schedule: {class: cosine, from: 1, to: 0.5, steps: end}}",
        "{class: chain, parts: [{schedule: 1, steps: 3e}, {schedule: {class: linear, from: 1, to: "
        "0.5, steps: end}}]}"}) {
    CAPTURE(text);
    const Scheduled made = schedule(text);
    CHECK(made.fallen_after() == 230);
    CHECK(made.at(229) > 0.5);
    CHECK(made.at(230) == 0.5);
  }
}

TEST_CASE("a warm-up is a line from 0, before the schedule begins") {
  const Scheduled made = schedule("{class: cosine, from: 2, to: 1, steps: 100, warmup: 10}");
  const Scheduled plain = schedule("{class: cosine, from: 2, to: 1, steps: 100}");
  for (int64_t step = 0; step < 10; ++step)
    CHECK(made.at(step) == doctest::Approx(0.2 * static_cast<double>(step)));
  for (int64_t step = 0; step < 120; ++step) CHECK(made.at(step + 10) == plain.at(step));
  const auto steps = schedule("{class: step, from: 1, factor: 0.1, at: [4e, 50%, 190]}");
  CHECK(steps.at(91) == 1);
  CHECK(steps.at(92) == doctest::Approx(0.1));
  CHECK(steps.at(115) == doctest::Approx(0.01));
  CHECK(steps.at(190) == doctest::Approx(0.001));
}

TEST_CASE("what is due at times may be so in parts of the training") {
  const LengthScope scope([] { return kLength; });
  const Trigger trigger(config_of("{every: 10%, from: 50%}"), "key", 23);
  std::vector<int64_t> due;
  for (int64_t step = 1; step <= 230; ++step) {
    if (trigger.is_due({step - 1, 0}, {step, 0})) due.push_back(step);
  }
  CHECK(due == std::vector<int64_t>{115, 138, 161, 184, 207, 230});
}

}  // namespace training_length_test
}  // namespace stepop
