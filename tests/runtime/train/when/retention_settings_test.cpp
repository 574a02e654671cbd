#include "runtime/train/when/settings.h"

#include <doctest/doctest.h>

#include "runtime/core/value/yaml_reader.h"
#include "tests/message_of.h"

namespace stepop {
namespace retention_settings_test {

constexpr int64_t kStepsPerEpoch = 25;

Config config_of(const std::string& yaml) {
  return Config(parse_yaml("checkpoints: " + yaml, {"test.yaml", 0}));
}

Retention retention_of(const std::string& yaml) {
  return read_retention(config_of(yaml), kStepsPerEpoch);
}

std::string refused(const std::string& yaml) {
  return message_of([&] { retention_of(yaml); });
}

TEST_CASE("without a word of checkpoints all stay") {
  for (const Config& config : {Config(), config_of("null"), config_of("{}")}) {
    const Retention retention = read_retention(config, kStepsPerEpoch);
    CHECK(retention.keep_last == 0);
    CHECK(retention.keep_best == 0);
    CHECK(retention.metric.empty());
    CHECK_FALSE(retention.keep_always);
  }
}

TEST_CASE("every key is read, and a misspelt one is found") {
  const Retention retention = retention_of(
      "{keep_last: 2, keep_best: 3, metric: validation/eval_op/loss, mode: min, keep_every: 10e}");
  CHECK(retention.keep_last == 2);
  CHECK(retention.keep_best == 3);
  CHECK(retention.metric == "validation/eval_op/loss");
  CHECK((retention.mode == Retention::Mode::kMin));
  CHECK(retention.keep_always(249, 250));
  CHECK(retention.keep_always(200, 260));
  CHECK_FALSE(retention.keep_always(250, 499));
  CHECK_FALSE(retention.keep_always(0, 249));
  CHECK_FALSE(retention.keep_always(0, 0));
  CHECK(retention_of("{metric: a, mode: max}").keep_best == 1);

  const Config config = config_of("{keep_lst: 2}");
  read_retention(config, kStepsPerEpoch);
  CHECK(config.unknown_keys() ==
        "test.yaml:1: unknown key \"checkpoints/keep_lst\": did you mean "
        "\"checkpoints/keep_last\"?");
}

TEST_CASE("a trigger with its map says what stays for good") {
  const Retention retention =
      retention_of("{keep_last: 1, keep_every: {every: 100, from: 50, at_start: true}}");
  CHECK(retention.keep_always(0, 0));
  CHECK(retention.keep_always(0, 50));
  CHECK_FALSE(retention.keep_always(50, 149));
  CHECK(retention.keep_always(149, 150));
}

TEST_CASE("what makes no sense is refused with its place") {
  CHECK(refused("3") ==
        "test.yaml:1: checkpoints: expected a map, such as {keep_last: 2}, found 3");
  CHECK(refused("{keep_last: -1}") ==
        "test.yaml:1: checkpoints/keep_last: expected 0 or more, found -1");
  CHECK(refused("{keep_best: 1}") ==
        "test.yaml:1: checkpoints/keep_best: needs checkpoints/metric, the number that says which "
        "checkpoint is the best, such as validation/eval_op/accuracy/accuracy");
  CHECK(refused("{mode: max}") ==
        "test.yaml:1: checkpoints/mode: needs checkpoints/metric, the number that says which "
        "checkpoint is the best, such as validation/eval_op/accuracy/accuracy");
  CHECK(refused("{metric: ''}") ==
        "test.yaml:1: checkpoints/metric: expected a name as in metrics.jsonl, such as "
        "validation/eval_op/accuracy/accuracy, found \"\"");
  CHECK(refused("{metric: a}") ==
        "test.yaml:1: checkpoints/mode: missing: max when more is better, as of an accuracy; min "
        "when less is, as of a loss");
  CHECK(refused("{metric: a, mode: most}") ==
        "test.yaml:1: checkpoints/mode: expected max or min, found \"most\"");
  CHECK(refused("{metric: a, mode: max, keep_best: 0}") ==
        "test.yaml:1: checkpoints/keep_best: expected 1 or more, found 0");
  CHECK(refused("{keep_last: 1, keep_every: 10m}") ==
        "test.yaml:1: checkpoints/keep_every: expected steps (100) or epochs (2e), found "
        "minutes: which checkpoints stay may not depend on the clock");
  CHECK(refused("{keep_every: 10e}") ==
        "test.yaml:1: checkpoints/keep_every: needs checkpoints/keep_last: without it every "
        "checkpoint is kept");
  CHECK(refused("{metric: a, mode: max, keep_best: 2}") ==
        "test.yaml:1: checkpoints/keep_best: needs checkpoints/keep_last: without it every "
        "checkpoint is kept");
  CHECK(refused("{keep_last: 0, metric: a, mode: max, keep_best: 2, keep_every: 5}") == "no error");
}

}  // namespace retention_settings_test
}  // namespace stepop
