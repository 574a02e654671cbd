#include "runtime/train/when/trigger.h"

#include <doctest/doctest.h>

#include "runtime/core/value/yaml_reader.h"
#include "tests/message_of.h"

namespace stepop {
namespace trigger_test {

using Steps = std::vector<int64_t>;

constexpr int64_t kStepsPerEpoch = 25;

Trigger trigger_of(const std::string& yaml) {
  const Config config(parse_yaml("when: " + yaml, {"test.yaml", 0}));
  return {config, "when", kStepsPerEpoch};
}

std::string refused(const std::string& yaml) {
  return message_of([&] { trigger_of(yaml); });
}

/// The steps up to `last` at which it is due.
Steps due_steps(const Trigger& trigger, int64_t last) {
  Steps steps;
  for (int64_t step = 1; step <= last; ++step) {
    if (trigger.is_due({step - 1, 0}, {step, 0})) steps.push_back(step);
  }
  return steps;
}

TEST_CASE("a number is a number of steps, with or without its unit") {
  CHECK(due_steps(trigger_of("100"), 350) == Steps{100, 200, 300});
  CHECK(due_steps(trigger_of("100s"), 350) == Steps{100, 200, 300});
  CHECK(due_steps(trigger_of("{every: 100}"), 350) == Steps{100, 200, 300});
  CHECK(due_steps(trigger_of("1"), 3) == Steps{1, 2, 3});
}

TEST_CASE("epochs may have a fraction, and fall on the step that enters the period") {
  CHECK(due_steps(trigger_of("2e"), 120) == Steps{50, 100});
  CHECK(due_steps(trigger_of("0.2e"), 16) == Steps{5, 10, 15});
  CHECK(due_steps(trigger_of("0.1e"), 10) == Steps{3, 5, 8, 10});  // 2.5, 5, 7.5, 10
}

TEST_CASE("a third of an epoch is due three times an epoch, whatever the rounding") {
  const Config config(parse_yaml("when: 0.333333333333333333e", {"test.yaml", 0}));
  CHECK(due_steps(Trigger(config, "when", 9), 90).size() == 30);
}

TEST_CASE("minutes count the training time of all starts") {
  const Trigger trigger = trigger_of("10m");
  CHECK_FALSE(trigger.is_due({100, 8}, {101, 9.9}));
  CHECK(trigger.is_due({101, 9.9}, {102, 10.2}));
  CHECK_FALSE(trigger.is_due({102, 10.2}, {103, 19}));
  // A later start continues from the time that its checkpoint holds.
  CHECK(trigger.is_due({500, 39.99}, {501, 40.01}));
  // A long step that spans several periods is due once.
  CHECK(trigger.is_due({501, 40.01}, {502, 85}));
  CHECK_FALSE(trigger.is_due({502, 85}, {503, 89}));
  CHECK(trigger_of("0.5m").is_due({0, 0.4}, {1, 0.6}));
}

TEST_CASE("a growing interval is edflow's: it doubles after every log") {
  // From edflow's LoggingHook: the interval starts at start_log_freq and doubles after each log.
  CHECK(due_steps(Trigger::every_steps(1, 2, 1000), 600) ==
        Steps{1, 3, 7, 15, 31, 63, 127, 255, 511});
  CHECK(due_steps(Trigger::every_steps(1, 2, 8), 50) == Steps{1, 3, 7, 15, 23, 31, 39, 47});
  CHECK(due_steps(trigger_of("{every: 1, grow: 2, up_to: 8}"), 50) ==
        due_steps(Trigger::every_steps(1, 2, 8), 50));
  // The last interval is up_to even when no doubling meets it.
  CHECK(due_steps(trigger_of("{every: 1, grow: 2, up_to: 5}"), 25) == Steps{1, 3, 7, 12, 17, 22});
  CHECK(due_steps(trigger_of("{every: 4, grow: 1.5, up_to: 9}"), 40) == Steps{4, 10, 19, 28, 37});
  CHECK(due_steps(trigger_of("{every: 5, grow: 2, up_to: 5}"), 20) == Steps{5, 10, 15, 20});
  CHECK(due_steps(trigger_of("{every: 3, grow: 1.0000001, up_to: 1000}"), 12) ==
        Steps{3, 7, 10});  // after 3, 6 and a bit, 9 and a bit
  // So many intervals could not be walked.
  const Trigger slow = trigger_of("{every: 1, grow: 1.000000000001, up_to: 1000000000000000}");
  CHECK(slow.is_due({0, 0}, {1'000'000'000'000'000, 0}));
  CHECK_FALSE(slow.is_due({1'000'000'000'000'000, 0}, {1'000'000'000'000'001, 0}));
}

TEST_CASE("from is the first time, until the last") {
  CHECK(due_steps(trigger_of("{every: 5, from: 12}"), 30) == Steps{12, 17, 22, 27});
  CHECK(due_steps(trigger_of("{every: 5, until: 12}"), 30) == Steps{5, 10});
  CHECK(due_steps(trigger_of("{every: 5, until: 10}"), 30) == Steps{5, 10});
  CHECK(due_steps(trigger_of("{every: 5, from: 12, until: 22}"), 30) == Steps{12, 17, 22});
  CHECK(due_steps(trigger_of("{every: 1e, from: 2e, until: 4e}"), 200) == Steps{50, 75, 100});
  CHECK(due_steps(trigger_of("{every: 1, grow: 2, up_to: 8, from: 10}"), 40) ==
        Steps{10, 11, 13, 17, 25, 33});
}

TEST_CASE("the start and the end are asked for by name") {
  CHECK_FALSE(trigger_of("100").at_start());
  CHECK_FALSE(trigger_of("100").at_end());
  CHECK(trigger_of("{every: 5, at_start: true}").at_start());
  CHECK(trigger_of("{at_end: true}").at_end());
  CHECK(due_steps(trigger_of("{at_end: true}"), 100) == Steps{});
}

TEST_CASE("being due needs no memory: any jump over a period is due once") {
  const Trigger trigger = trigger_of("{every: 1, grow: 2, up_to: 8}");
  CHECK(trigger.is_due({2, 0}, {40, 0}));
  CHECK_FALSE(trigger.is_due({40, 0}, {40, 0}));
  CHECK_FALSE(Trigger::never().is_due({0, 0}, {1'000'000, 1e6}));
  CHECK_FALSE(Trigger::never().is_ever_due());
  // Far from the start there is no rounding: a step is due or not as at the start.
  const Trigger hundreds = trigger_of("100");
  CHECK(hundreds.is_due({9'999'999'999, 0}, {10'000'000'000, 0}));
  CHECK_FALSE(hundreds.is_due({10'000'000'000, 0}, {10'000'000'001, 0}));
}

TEST_CASE("what is no trigger is refused with its place and what would be one") {
  const std::string expected =
      "expected a number of steps (100), epochs (2e), minutes (10m), examples (10k examples), or "
      "a part of the training (10%, end), or a map with \"every\"";
  CHECK(refused("often") == "test.yaml:1: when: " + expected + ", found \"often\"");
  CHECK(refused("[1]") == "test.yaml:1: when: " + expected + ", found [1]");
  CHECK(refused("true") == "test.yaml:1: when: " + expected + ", found true");
  CHECK(refused("10h") ==
        "test.yaml:1: when: unknown unit \"h\" in \"10h\"; there are s (steps), "
        "e (epochs), m (minutes), % (of the training) and \" examples\"");
  CHECK(refused("-3") == "test.yaml:1: when: expected more than 0, found -3");
  CHECK(refused("-1e") == "test.yaml:1: when: expected more than 0, found \"-1e\"");
  CHECK(refused("0") == "test.yaml:1: when: expected more than 0, found 0");
  CHECK(refused(".nan") == "test.yaml:1: when: expected more than 0, found .nan");
  CHECK(refused(".inf") == "test.yaml:1: when: expected more than 0, found .inf");
  CHECK(refused("{every: 0}") == "test.yaml:1: when/every: expected more than 0, found 0");
  CHECK(refused("{every: 10m, from: 100}") ==
        "test.yaml:1: when/from: minutes cannot be mixed with steps or epochs in one trigger");
  CHECK(refused("{every: 5, grow: 0.5, up_to: 10}") ==
        "test.yaml:1: when/grow: expected 1 or more, found 0.5");
  CHECK(refused("{every: 5, grow: 2}") ==
        "test.yaml:1: when/up_to: missing: an interval that grows needs its largest value");
  CHECK(refused("{every: 5, grow: 2, up_to: 4}") ==
        "test.yaml:1: when/up_to: expected at least as much as \"every\", found 4");
  CHECK(refused("{every: 5, from: 20, until: 10}") ==
        "test.yaml:1: when/until: expected at least as much as \"from\", found 10");
  CHECK(refused("{from: 100}") == "test.yaml:1: when: is never due: " + expected);
  CHECK(refused("{evry: 5}") == "test.yaml:1: when/evry: unknown key; did you mean \"every\"?");
  CHECK(refused("{}") == "test.yaml:1: when: is never due: " + expected);
}

TEST_CASE("a misspelt key of a trigger is found") {
  const Config config(parse_yaml("when: {evry: 5, every: 3}", {"test.yaml", 0}));
  const Trigger trigger(config, "when", kStepsPerEpoch);
  CHECK(config.unknown_keys() ==
        "test.yaml:1: unknown key \"when/evry\": did you mean \"when/every\"?");
}

}  // namespace trigger_test
}  // namespace stepop
