#include "runtime/tools/start/kept_settings.h"

#include <doctest/doctest.h>

#include <string>

#include "runtime/core/value/yaml_reader.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace kept_settings_test {

TEST_CASE("settings are found again when what costs nothing changes, not with another model") {
  const std::string config =
      "iterator: Classifier\noptimizer: Adam\nmodel: LeNet\n"
      "datasets: {train: {class: Synthetic}, validation: {class: Synthetic}}\nbatch_size: 4\n";
  const auto file = [&](const std::string& more) {
    return kept_settings_file(parse_yaml(config + more, {"test.yaml", 0}));
  };
  for (const char* more :
       {"stop_when: {metric: validation/eval_op/loss, patience: 5e}\n", "num_steps: 7\n",
        "num_epochs: 3\n", "seed: 4\n", "log_freq: 3\n", "checkpoints: {keep_last: 1}\n",
        "eval_hook: {max_batches: 3}\n", "evaluations: {a: {freq: 1}}\n",
        "telemetry: {active: false}\n", "integrations: {csv: {active: true}}\n",
        "test_batch_size: 3\n", "extra: {why: b}\n", "num_threads: 1\n", "n_prefetch: 3\n",
        "cuda_graph: true\n"}) {
    CAPTURE(std::string(more));
    CHECK(file(more) == file(""));
  }
  for (const char* more : {"accumulate: 2\n", "precision: bfloat16\n", "ema: {decay: 0.9}\n",
                           "train_ops: [train/other_op]\n"}) {
    CAPTURE(std::string(more));
    CHECK(file(more) != file(""));
  }
}

TEST_CASE("of a file of settings those that tune looks for come back") {
  const ScratchFolder folder;
  folder.write("tuned.yaml", "cuda_graph: true\nnum_threads: 2\nbatch_size: 4\n");
  const auto settings = read_tuned(folder.path("tuned.yaml"));
  REQUIRE(settings);
  CHECK(settings->size() == 2);
  CHECK(settings->at("cuda_graph") == Value(true));
  CHECK_FALSE(read_tuned(folder.path("none.yaml")));
}

}  // namespace kept_settings_test
}  // namespace stepop
