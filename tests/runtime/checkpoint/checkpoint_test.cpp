#include "runtime/checkpoint/checkpoint.h"

#include <ATen/ops/arange.h>
#include <doctest/doctest.h>

#include "runtime/checkpoint/safetensors.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace {

TEST_CASE("a checkpoint comes back with every number of the run") {
  const ScratchFolder folder;
  Checkpoint saved;
  saved.tensors = {{"model.w", at::arange(3)}};
  saved.config = "a: 1\n";
  saved.progress.global_step = 700;
  saved.progress.epoch = 30;
  saved.progress.batch = 10;
  saved.progress.train_examples = 1442;
  saved.progress.samples_seen = 44800;
  saved.progress.seconds = 12.625;
  saved.progress.batches_taken = {{"validation", 5}, {"extra split", 6}};
  saved.progress.evaluation_folder = "eval/x/700";
  const std::string path = save_checkpoint(folder.path(), saved);
  CHECK(path == folder.path("model-700.safetensors"));

  const Checkpoint loaded = load_checkpoint(path);
  CHECK(values_of<int64_t>(loaded.tensors.at("model.w")) == std::vector<int64_t>{0, 1, 2});
  CHECK(loaded.config == saved.config);
  CHECK(loaded.progress.to_json() == saved.progress.to_json());
  CHECK(loaded.progress.global_step == 700);
  CHECK(loaded.progress.epoch == 30);
  CHECK(loaded.progress.batch == 10);
  CHECK(loaded.progress.train_examples == 1442);
  CHECK(loaded.progress.samples_seen == 44800);
  CHECK(loaded.progress.seconds == 12.625);
  CHECK(loaded.progress.batches_taken == saved.progress.batches_taken);
  CHECK(loaded.progress.evaluation_folder == "eval/x/700");
}

TEST_CASE("a checkpoint from before the size of the training dataset was kept has it as unknown") {
  Progress progress;
  progress.train_examples = 7;
  std::string text = progress.to_json();
  const std::string entry = "\"train_examples\":7,";
  REQUIRE(text.find(entry) != std::string::npos);
  CHECK(Progress::from_json(text).train_examples == 7);
  text.erase(text.find(entry), entry.size());
  CHECK(Progress::from_json(text).train_examples == 0);
}

TEST_CASE("the steps of a folder are told in order, whatever else lies there") {
  const ScratchFolder folder;
  for (const int64_t step : {100, 20, 3}) folder.write(checkpoint_name(step), "");
  for (const char* other : {"model-x.safetensors", "model-7.safetensors.tmp", "model-.safetensors",
                            "best.safetensors"}) {
    folder.write(other, "");
  }
  CHECK(checkpoint_steps(folder.path()) == std::vector<int64_t>{3, 20, 100});
  CHECK(checkpoint_steps(folder.path("none")).empty());
}

TEST_CASE("a safetensors file of another program is no checkpoint") {
  const ScratchFolder folder;
  const std::string path = folder.path("weights.safetensors");
  save_safetensors(path, {{"w", at::arange(3)}}, {{"format", "pt"}});
  CHECK(message_of([&] { load_checkpoint(path); }) ==
        path + ": not a checkpoint of stepop: its format is \"pt\", expected \"stepop-1\"");
  save_safetensors(path, {}, {{"format", "stepop-1"}, {"progress", "{"}});
  CHECK(message_of([&] {
          load_checkpoint(path);
        }).starts_with(path + ": the position of the run cannot be read: "));
}

}  // namespace
}  // namespace stepop
