#include "runtime/train/run/run_summary.h"

#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>

#include "runtime/core/base/error.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "runtime/train/checkpoint/checkpoint_folder.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace run_summary_test {

namespace fs = std::filesystem;

const std::string kAccuracy = "validation/eval_op/accuracy/accuracy";
const std::string kConfig = "num_epochs: 20\ncheckpoints: {metric: " + kAccuracy + ", mode: max}\n";
const std::string kMetrics = "{\"step\": 10, \"epoch\": 1, \"" + kAccuracy +
                             "\": 0.5}\n"
                             "{\"step\": 20, \"epoch\": 2, \"" +
                             kAccuracy +
                             "\": 0.9}\n"
                             "{\"step\": 30, \"epoch\": 3, \"" +
                             kAccuracy +
                             "\": \"NaN\"}\n"
                             "{\"step\": 40, \"epoch\": 4, \"" +
                             kAccuracy +
                             "\": 0.75}\n"
                             "{\"step\": 45, \"epoch\": 4.5, \"train/log_op/loss\": 0.1}\n"
                             "{\"step\": 46, \"epo";

std::string make_run(const ScratchFolder& folder, const std::string& name,
                     const std::string& config, const std::string& metrics) {
  folder.write(name + "/configs/train_2026-11-21T10-00-00.yaml", config);
  if (!metrics.empty()) folder.write(name + "/train/metrics.jsonl", metrics);
  return folder / name;
}

void save_checkpoint_at(const std::string& root, int64_t step) {
  fs::create_directories(root + "/train/checkpoints");
  Checkpoint checkpoint;
  checkpoint.tensors = {{"w", at::zeros({1})}};
  checkpoint.progress.global_step = step;
  checkpoint.progress.epoch = step / 10;
  checkpoint.progress.batch = step % 10;
  checkpoint.progress.batches_per_epoch = 10;
  save_checkpoint(root + "/train/checkpoints", checkpoint);
}

TEST_CASE("a run is told with the config's metric, last and best") {
  const ScratchFolder folder;
  const RunSummary run = summarize_run(make_run(folder, "run", kConfig, kMetrics));
  CHECK(run.name == "run");
  CHECK(run.status.state == RunState::kUnknown);
  CHECK(run.step == 45);
  CHECK(run.epoch == 4.5);
  CHECK(run.num_epochs == 20.0);
  CHECK(run.metric == kAccuracy);
  CHECK(run.last == 0.75);
  CHECK(run.best == 0.9);
  CHECK(run.age >= 0);
}

TEST_CASE("the best is that of the best checkpoint, whose evaluation is read, not the metrics") {
  const ScratchFolder folder;
  const std::string root = make_run(folder, "run", kConfig, kMetrics);
  save_checkpoint_at(root, 20);
  CheckpointFolder(root + "/train/checkpoints")
      .update_links_and_sweep({{20, 0.9}}, {.keep_best = 1, .metric = kAccuracy});
  folder.write("run/eval/2026-11-21T10-00-00_run/20/scalars.json",
               "{\"" + kAccuracy + "\": 0.890625}");
  CHECK(summarize_run(root).best == 0.890625);
}

TEST_CASE("the best is of the training's newest evaluation, not of those without a training") {
  const ScratchFolder folder;
  const std::string root = make_run(folder, "run", kConfig, kMetrics);
  save_checkpoint_at(root, 20);
  CheckpointFolder(root + "/train/checkpoints")
      .update_links_and_sweep({{20, 0.9}}, {.keep_best = 1, .metric = kAccuracy});
  const auto evaluated = [&](const std::string& start, const std::string& value) {
    folder.write("run/eval/" + start + "_run/20/scalars.json",
                 "{\"" + kAccuracy + "\": " + value + "}");
  };
  for (const char* hour : {"10", "11", "12", "13", "14", "15"}) {
    evaluated(std::string("2026-11-21T") + hour + "-00-00", std::string("0.") + hour);
  }
  folder.write("run/configs/eval_2026-11-21T15-00-00.yaml", kConfig);
  CHECK(summarize_run(root).best == 0.14);
}

TEST_CASE("of a run that never trained, the newest evaluation is told") {
  const ScratchFolder folder;
  for (const char* time : {"2026-11-21T11-00-00", "2026-11-21T10-00-00"}) {
    folder.write(std::string("run/configs/eval_") + time + ".yaml", kConfig);
  }
  folder.write("run/eval/2026-11-21T11-00-00_run/460/scalars.json",
               "{\"validation/eval_op/loss\": 0.5, \"" + kAccuracy + "\": 0.75}");
  folder.write("run/eval/2026-11-21T10-00-00_run/23/scalars.json", "{\"" + kAccuracy + "\": 1}");
  const RunSummary run = summarize_run(folder / "run");
  CHECK(run.step == 460);
  CHECK(run.metric == kAccuracy);
  CHECK(run.last == 0.75);
  CHECK(!run.best);
}

TEST_CASE("without a metric in the config it is that of the last evaluation, else any") {
  const ScratchFolder folder;
  const RunSummary evaluated = summarize_run(make_run(folder, "a", "num_steps: 9\n", kMetrics));
  CHECK(evaluated.metric == kAccuracy);
  CHECK(evaluated.best == 0.9);
  CHECK(!evaluated.num_epochs);
  const RunSummary logged =
      summarize_run(make_run(folder, "b", "", "{\"step\": 1, \"train/log_op/lr\": 0.1}\n"));
  CHECK(logged.metric == "train/log_op/lr");
  CHECK(logged.last == 0.1);
  CHECK(!logged.best);
}

TEST_CASE("without a metric in the config, one with a known direction comes first") {
  const ScratchFolder folder;
  const RunSummary run = summarize_run(make_run(
      folder, "a", "num_steps: 9\n",
      "{\"step\": 1, \"validation/eval_op/largest\": 3, \"validation/eval_op/loss\": 0.5}\n"));
  CHECK(run.metric == "validation/eval_op/loss");
  CHECK(run.best == 0.5);
}

TEST_CASE("a run that only predicts or evaluates has the state of that") {
  const ScratchFolder folder;
  folder.write("run/configs/eval_2026-11-21T11-00-00.yaml", "a: 1\n");
  CHECK(summarize_run(folder / "run").status.state == RunState::kUnknown);
  RunProcess process = RunProcess::self("2026-11-21T10-00-00");
  folder.write("run/eval/2026-11-21T10-00-00_run/process.json", process.to_json());
  CHECK(summarize_run(folder / "run").status.state == RunState::kRunning);
  process.state = "done";
  folder.write("run/eval/2026-11-21T11-00-00_run/process.json", process.to_json());
  CHECK(summarize_run(folder / "run").status.state == RunState::kEnded);
}

TEST_CASE("a checkpoint beyond the last log tells the step") {
  const ScratchFolder folder;
  const std::string root = make_run(folder, "run", kConfig, kMetrics);
  save_checkpoint_at(root, 63);
  const RunSummary run = summarize_run(root);
  CHECK(run.step == 63);
  CHECK(run.epoch == 6.3);
  CHECK(run.last == 0.75);
}

TEST_CASE("damaged, half made and empty runs are told with what is known") {
  const ScratchFolder folder;
  make_run(folder, "2026-11-21T10-00-03_no_yaml", "a: [\n", "{\"step\": 3}\n[1]\n\n{\"");
  make_run(folder, "2026-11-21T10-00-02_empty", "", "");
  folder.write("2026-11-21T10-00-01_odd/configs/file", "");
  fs::create_directories(folder / "2026-11-21T10-00-01_odd/train/metrics.jsonl");
  folder.write("2026-11-21T10-00-01_odd/train/process.json", "\xff\xfe");
  folder.write("2026-11-21T10-00-01_odd/train/checkpoints/model-5.safetensors", "short");
  folder.write(".2026-11-21T10-00-09_hidden.12.tmp/configs/train.yaml", "");
  folder.write("other/file", "");
  folder.write("file", "");
  folder.write("debug_runs/2026-11-21T10-00-04_d/configs/train_x.yaml", "a: 1\n");

  const std::vector<RunSummary> runs = list_runs(folder.path(), /*with_debug=*/false);
  REQUIRE(runs.size() == 3);
  CHECK(runs[0].name == "2026-11-21T10-00-03_no_yaml");
  CHECK(runs[0].step == 3);
  CHECK(runs[0].metric == "");
  CHECK(runs[1].name == "2026-11-21T10-00-02_empty");
  CHECK(!runs[1].step);
  CHECK(runs[2].name == "2026-11-21T10-00-01_odd");
  CHECK(runs[2].step == 5);
  CHECK(!runs[2].epoch);

  const std::vector<RunSummary> all = list_runs(folder.path(), /*with_debug=*/true);
  REQUIRE(all.size() == 4);
  CHECK(all[0].name == "debug_runs/2026-11-21T10-00-04_d");
}

TEST_CASE("a folder that cannot be read is an error") {
  const ScratchFolder folder;
  const std::string path = folder / "none";
  CHECK(message_of([&] { list_runs(path, false); }) ==
        "cannot read " + path + ": No such file or directory");
}

}  // namespace run_summary_test
}  // namespace stepop
