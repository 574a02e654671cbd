#include "runtime/core/config/batch_size.h"

#include <doctest/doctest.h>

#include "runtime/core/value/yaml_reader.h"
#include "tests/message_of.h"

namespace stepop {
namespace batch_size_test {

Config config_of(const std::string& yaml) { return Config(parse_yaml(yaml, {"test.yaml", 0})); }

int64_t of_training(const std::string& yaml, int64_t processes) {
  return read_batch_size(config_of(yaml), processes);
}

int64_t of_evaluations(const std::string& yaml) { return read_test_batch_size(config_of(yaml)); }

TEST_CASE("a batch_size is of all processes together, per_process of each") {
  for (const int64_t processes : {1, 2, 3, 512}) {
    CAPTURE(processes);
    CHECK(of_training("batch_size: 64", processes) == 64);
    CHECK(of_training("batch_size: {per_process: 64}", processes) == 64 * processes);
  }
}

TEST_CASE("a batch of an evaluation is one process's, by default as large as in training") {
  CHECK(of_evaluations("batch_size: 64") == 64);
  CHECK(of_evaluations("batch_size: {per_process: 16}") == 16);
  CHECK(of_evaluations("batch_size: {per_process: 16}\ntest_batch_size: 100") == 100);
  CHECK(of_evaluations("batch_size: 8\ntest_batch_size: {per_process: 32}") == 32);
  CHECK(of_evaluations("batch_size: 8\ntest_batch_size: null") == 8);
}

TEST_CASE("the default of test_batch_size is noted, per_process is a known key") {
  const Config config = config_of("batch_size: {per_process: 16}");
  read_test_batch_size(config);
  CHECK(config.unknown_keys().empty());
  const auto defaults = config.taken_defaults();
  REQUIRE(defaults.size() == 1);
  CHECK(defaults[0].path == "test_batch_size");
}

TEST_CASE("other maps, and numbers below 1, are refused with their place") {
  const auto refused = [](const std::string& yaml) {
    return message_of([&] { of_training(yaml, 2); });
  };
  CHECK(
      refused("batch_size: {per_proces: 64}") ==
      "test.yaml:1: batch_size: expected a number of examples, or {per_process: 64}, found a map");
  CHECK(
      refused("batch_size: {per_process: 64, most: 100}") ==
      "test.yaml:1: batch_size: expected a number of examples, or {per_process: 64}, found a map");
  CHECK(refused("batch_size: {per_process: 0}") ==
        "test.yaml:1: batch_size/per_process: expected 1 or more, found 0");
  CHECK(refused("batch_size: {per_process: fast}") ==
        "test.yaml:1: batch_size/per_process: expected a whole number, found \"fast\"");
  CHECK(refused("batch_size: {per_process: 9000000000000000000}") ==
        "test.yaml:1: batch_size/per_process: too many for 2 processes");
  CHECK(refused("batch_size: 0") == "test.yaml:1: batch_size: expected 1 or more, found 0");
  CHECK(message_of([] { of_evaluations("batch_size: 4\ntest_batch_size: {each: 4}"); }) ==
        "test.yaml:2: test_batch_size: expected a number of examples, or {per_process: 64}, found "
        "a map");
}

}  // namespace batch_size_test
}  // namespace stepop
