#include "runtime/tools/cli/kept_settings.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/message_of.h"
#include "tests/test_run.h"

namespace stepop {
namespace kept_settings_test {

const std::string kConfig =
    "iterator: Classifier\noptimizer: Adam\nmodel: LeNet\n"
    "datasets: {train: {class: Synthetic}, validation: {class: Synthetic}}\nbatch_size: "
    "4\nnum_steps: 2\nn_data_processes: 0\n";

TEST_CASE("each key that a step's cost does not depend on is one that a training knows") {
  for (const std::string key : keys_that_cost_nothing()) {
    CAPTURE(key);
    const std::string message = message_of(
        [&] { Session(test_config(kConfig + key + ": null\n"), /*train=*/true, false, false); });
    CHECK(message.find("unknown key \"" + key) == std::string::npos);
  }
}

TEST_CASE("settings are found again when early stopping is added, not with another model") {
  const auto file = [](const std::string& more) {
    return kept_settings_file(parse_yaml(kConfig + more, {"test.yaml", 0}));
  };
  CHECK(file("stop_when: {metric: validation/eval_op/loss, patience: 5e}\n") == file(""));
  CHECK(file("accumulate: 2\n") != file(""));
}

}  // namespace kept_settings_test
}  // namespace stepop
