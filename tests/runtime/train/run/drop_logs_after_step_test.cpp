#include "runtime/train/run/drop_logs_after_step.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "tests/cli/digits_run.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace drop_logs_after_step_test {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

/// A run's folder with files of steps 0 to 300.
struct OldRun {
  OldRun() {
    std::string metrics;
    for (const int step : {0, 100, 200, 300}) {
      const std::string name = std::to_string(step);
      const std::string padded = std::string(7 - name.size(), '0') + name;
      write("train/checkpoints/model-" + name + ".safetensors");
      write("train/train/log_op/input_" + padded + ".png");
      write("train/validation/sample_op/deep/input_" + padded + ".jpg");
      metrics += "{\"step\": " + name + ", \"loss\": 1}\n";
    }
    write("train/metrics.jsonl", metrics);
    write("train/log.txt");
    write("train/train/log_op/without_number.png");
    fs::create_symlink("model-300.safetensors",
                       directory.root() + "/train/checkpoints/latest.safetensors");
  }

  void write(const std::string& name, const std::string& text = "x") const {
    const fs::path path = fs::path(directory.root()) / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  Names files(const std::string& below) const {
    return files_below(directory.root() + "/" + below);
  }

  ScratchFolder folder;
  RunDirectory directory = RunDirectory::create(folder.path("logs"), "2026-11-21T10-00-00", "old");
};

TEST_CASE("what came after the step moves aside, what belongs to no step stays") {
  const OldRun run;
  const DroppedLogs moved = drop_logs_after_step(run.directory, 100, "now");
  CHECK(moved.folder == "train/superseded/now");
  CHECK(moved.checkpoints == 2);
  CHECK(moved.files == 4);
  CHECK(moved.metrics == 2);
  CHECK(run.files("train/superseded/now") ==
        Names{"checkpoints/model-200.safetensors", "checkpoints/model-300.safetensors",
              "metrics.jsonl", "train/log_op/input_0000200.png", "train/log_op/input_0000300.png",
              "validation/sample_op/deep/input_0000200.jpg",
              "validation/sample_op/deep/input_0000300.jpg"});
  CHECK(read_bytes(run.directory.metrics_file()) ==
        "{\"step\": 0, \"loss\": 1}\n{\"step\": 100, \"loss\": 1}\n");
  CHECK(run.files("train/train") ==
        Names{"log_op/input_0000000.png", "log_op/input_0000100.png", "log_op/without_number.png"});
  CHECK(drop_logs_after_step(run.directory, 100, "again").folder.empty());
  CHECK_FALSE(fs::exists(run.directory.root() + "/train/superseded/again"));
}

TEST_CASE("texts and sounds of later steps move aside, too") {
  const OldRun run;
  run.write("train/train/log_op/sample_0000100.txt");
  run.write("train/train/log_op/sample_0000200.txt");
  run.write("train/train/log_op/voice/0_0000200.wav");
  CHECK(drop_logs_after_step(run.directory, 100, "now").files == 6);
  CHECK(
      fs::exists(run.directory.root() + "/train/superseded/now/train/log_op/voice/0_0000200.wav"));
  CHECK(fs::exists(run.directory.root() + "/train/train/log_op/sample_0000100.txt"));
  CHECK(fs::exists(run.directory.root() + "/train/superseded/now/train/log_op/sample_0000200.txt"));
}

TEST_CASE("what was saved of a later step that met NaN moves aside, too") {
  const OldRun run;
  run.write("train/non_finite/100/batch.json");
  run.write("train/non_finite/400/batch.json");
  CHECK(drop_logs_after_step(run.directory, 300, "now").folder == "train/superseded/now");
  CHECK(run.files("train/superseded/now") == Names{"non_finite/400/batch.json"});
  CHECK(run.files("train/non_finite") == Names{"100/batch.json"});
}

TEST_CASE("half an evaluation of a later step moves aside, a whole one stays") {
  const OldRun run;
  const std::string start = "eval/2026-11-21T10-00-00_old/";
  run.write(start + "100/outputs.h5.part");
  run.write(start + "200/outputs.h5");
  run.write(start + "300/outputs.h5.part");
  run.write("configs/eval_2026-11-21T10-00-05.yaml");
  run.write("eval/2026-11-21T10-00-05_old/300/outputs.h5.part");  // without a training
  CHECK(drop_logs_after_step(run.directory, 100, "now").files == 5);
  CHECK(run.files("eval") == Names{"2026-11-21T10-00-00_old/100/outputs.h5.part",
                                   "2026-11-21T10-00-00_old/200/outputs.h5",
                                   "2026-11-21T10-00-05_old/300/outputs.h5.part"});
  CHECK(run.files("train/superseded/now/" + start) == Names{"300/outputs.h5.part"});
}

TEST_CASE("a start at step 0 logs step 0 again, one without a checkpoint keeps nothing") {
  const OldRun run;
  const DroppedLogs moved = drop_logs_after_step(run.directory, 0, "now");
  CHECK(moved.checkpoints == 3);
  CHECK(moved.files == 8);
  CHECK(moved.metrics == 4);
  CHECK(drop_logs_after_step(run.directory, -1, "later").checkpoints == 1);
}

TEST_CASE("half a last line of the metrics is removed, and that is reported") {
  const OldRun run;
  run.write("train/metrics.jsonl", "{\"step\": 100, \"loss\": 1}\n{\"step\": 100, \"lo");
  const DroppedLogs moved = drop_logs_after_step(run.directory, 300, "now");
  CHECK(moved.folder.empty());
  CHECK(moved.repaired != "");
  CHECK(read_bytes(run.directory.metrics_file()) == "{\"step\": 100, \"loss\": 1}\n");
}

}  // namespace drop_logs_after_step_test
}  // namespace stepop
