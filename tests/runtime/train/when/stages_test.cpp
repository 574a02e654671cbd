#include "runtime/train/when/stages.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "runtime/core/value/yaml_reader.h"
#include "runtime/train/when/settings.h"
#include "tests/message_of.h"

namespace stepop {
namespace stages_test {

constexpr int64_t kStepsPerEpoch = 10;

Settings settings_of(const std::string& stages, const std::string& more = "") {
  const Config config(parse_yaml("batch_size: 1\nnum_steps: 1000\n" + more + "stages: " + stages +
                                     "\ndatasets: {train: A, validation: A}\n",
                                 {"test.yaml", 0}));
  return Settings(config, kStepsPerEpoch, /*train=*/true, /*debug=*/false);
}

std::string refused(const std::string& stages, const std::string& more = "") {
  return message_of([&] { settings_of(stages, more); });
}

/// The ops of steps `first` to `last`, counted from 1: `a b|a|`.
std::string calls(const Settings& settings, int64_t first, int64_t last) {
  std::string text;
  for (int64_t step = first; step <= last; ++step) {
    std::string names;
    for (const auto& op : settings.train_ops) {
      if (!op.is_due_in_step_after(step - 1)) continue;
      names += (names.empty() ? "" : " ") + op.name.op;
    }
    text += names + "|";
  }
  return text;
}

TEST_CASE("stages that all have a length follow one another in a cycle") {
  const Settings gan =
      settings_of("[{train_ops: [train/d], for: 2}, {train_ops: [train/g], for: 1}]");
  CHECK(calls(gan, 1, 8) == "d|d|g|d|d|g|d|d|");
  CHECK(calls(gan, 100, 103) == "d|d|g|d|");
}

TEST_CASE("a last stage without a length lasts to the end") {
  const Settings settings = settings_of(
      "[{train_ops: [train/warm], for: 0.2e}, {train_ops: [train/d, train/g], for: 1}, "
      "{train_ops: [train/g, train/d]}]");
  CHECK(calls(settings, 1, 6) == "warm|warm|d g|g d|g d|g d|");
  CHECK(calls(settings, 999, 1000) == "g d|g d|");
}

TEST_CASE("an op within a stage has a time of its own, in steps of the training") {
  const Settings settings = settings_of(
      "[{train_ops: [train/d, {op: train/p, when: 3}], for: 4}, {train_ops: [train/g], for: 2}]");
  CHECK(calls(settings, 1, 12) == "d|d|d p|d|g|g|d|d|d p|d|g|g|");
}

TEST_CASE("an op that several stages have is one op for everything else") {
  const Settings settings =
      settings_of("[{train_ops: [train/d], for: 1}, {train_ops: [train/g, train/d], for: 1}]");
  const auto due = due_ops(settings, /*train=*/true);
  CHECK(due.at(0).train == std::vector<std::string>{"d", "g"});
}

TEST_CASE("the steps until every op was due are found in the turns of its stage") {
  const auto until_all = [](const std::string& stages, int64_t step) {
    return settings_of(stages).steps_until_all_trained(step);
  };
  const std::string gan = "[{train_ops: [train/d], for: 5}, {train_ops: [train/g], for: 1}]";
  CHECK(until_all(gan, 0) == 6);
  CHECK(until_all(gan, 5) == 2);
  CHECK(until_all(gan, 6) == 6);
  CHECK(until_all("[{train_ops: [train/a], for: 300}, {train_ops: [train/b]}]", 0) == 301);
  // Steps 1 to 4 of each six, and every seventh: 28, 42 and so on are none, 7 is the first.
  CHECK(until_all("[{train_ops: [{op: train/a, when: 7}], for: 4}, {train_ops: [train/b], for: 2}]",
                  0) == 7);
  // Every sixth step is in the other stage.
  CHECK(until_all("[{train_ops: [{op: train/a, when: 6}], for: 4}, {train_ops: [train/b], for: 2}]",
                  0) == 1000);
  // A stage that is over: none is left of its op.
  CHECK(until_all("[{train_ops: [train/a], for: 3}, {train_ops: [train/b]}]", 10) == 990);
}

TEST_CASE("what is no list of stages is told with its place") {
  const std::string example =
      "[{train_ops: [train/train_op/critic], for: 5}, {train_ops: [train/train_op/generator], for: "
      "1}]";
  CHECK(refused("3") ==
        "test.yaml:3: stages: expected a list of stages, such as " + example + ", found 3");
  CHECK(refused("[train/d]") ==
        "test.yaml:3: stages/0: expected a stage, such as {train_ops: [train/train_op], for: 2e}, "
        "found \"train/d\"");
  CHECK(refused("[{train_ops: [train/d]}, {train_ops: [train/g]}]") ==
        "test.yaml:3: stages/0/for: missing: only the last stage may last to the end");
  CHECK(refused("[{train_ops: [train/d], for: 5m}]") ==
        "test.yaml:3: stages/0/for: expected steps (100) or epochs (2e), found minutes: what a "
        "training does may not depend on the clock");
  CHECK(refused("[{train_ops: [train/d], for: 0}]").starts_with("test.yaml:3: stages/0/for: "));
  CHECK(refused("[{train_ops: [train/d], for: 1e99}]") ==
        "test.yaml:3: stages/0/for: expected a number that can be reached, found 1.0e+99");
  CHECK(refused("[{for: 3}]").starts_with("test.yaml:3: stages/0/train_ops: missing"));
  CHECK(refused("[{train_ops: [], for: 3}]") ==
        "test.yaml:3: stages/0/train_ops: expected at least one train op, found []");
  CHECK(refused("[{train_ops: [validation/d], for: 3}]") ==
        "test.yaml:3: stages/0/train_ops/0: a train op belongs to the split train: train/train_op");
  CHECK(refused("[{train_ops: [train/d, train/d], for: 3}]") ==
        "test.yaml:3: stages/0/train_ops/1: \"train/d\" is there twice");
  CHECK(refused("[{train_ops: [train/d], for: 3}]", "train_ops: [train/g]\n") ==
        "test.yaml:3: train_ops: each of the stages has train ops of its own: leave this out");
}

}  // namespace stages_test
}  // namespace stepop
