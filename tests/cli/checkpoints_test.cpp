// `stepop checkpoints RUN`.

#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "runtime/train/checkpoint/checkpoint.h"
#include "runtime/train/checkpoint/checkpoint_folder.h"
#include "tests/cli/command.h"

namespace stepop {
namespace checkpoints_test {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// The folder of a run, made by hand.
class HandMadeRun {
 public:
  explicit HandMadeRun(const std::string& config) {
    folder_.write("run/configs/train_2026-11-21T10-00-00.yaml", config);
    fs::create_directories(checkpoints());
  }

  const ScratchFolder& folder() const { return folder_; }
  std::string checkpoints() const { return folder_.path("run/train/checkpoints"); }

  /// A checkpoint of 10 batches an epoch.
  std::string save(int64_t step, std::chrono::seconds age, int64_t floats = 250'000) const {
    Checkpoint checkpoint;
    checkpoint.tensors = {{"w", at::zeros({floats})}};
    checkpoint.progress.global_step = step;
    checkpoint.progress.epoch = step / 10;
    checkpoint.progress.batch = step % 10;
    checkpoint.progress.batches_per_epoch = 10;
    const std::string path = save_checkpoint(checkpoints(), checkpoint);
    fs::last_write_time(path, fs::file_time_type::clock::now() - age);
    return path;
  }

  std::string listing() const {
    const CommandResult result = run_in(folder_, "stepop checkpoints run");
    CHECK(result.err == "");
    CHECK(result.exit_code == 0);
    // A busy machine comes to this some seconds later.
    return std::regex_replace(result.out, std::regex("9[0-9] s ago"), "90 s ago");
  }

 private:
  ScratchFolder folder_;
};

TEST_CASE("checkpoints are listed with the metric, the latest, the best and the damaged") {
  const HandMadeRun run("checkpoints: {metric: validation/eval_op/accuracy/accuracy, mode: max}\n");
  run.save(5, 49h, 1'000'000);
  run.save(10, 3h + 59min);
  run.save(20, 90s);
  const std::string damaged = run.save(1234, 0s);
  const std::string accuracy = "\"validation/eval_op/accuracy/accuracy\": ";
  run.folder().write("run/train/metrics.jsonl",
                     "{\"step\": 5, \"train/log_op/loss\": 1}\n"
                     "{\"step\": 5, " +
                         accuracy +
                         "0.5}\n"
                         "{\"step\": 10, " +
                         accuracy +
                         "0.25}\n"
                         "{\"step\": 10, " +
                         accuracy +
                         "0.98765}\n"  // the later one counts
                         "{\"step\": 20, " +
                         accuracy +
                         "\"NaN\"}\n"
                         "[1]\n{\"step\": \"x\", " +
                         accuracy +
                         "1}\n"
                         "{\"step\": 1234, " +
                         accuracy + "1");  // killed here
  CheckpointFolder(run.checkpoints())
      .update_links_and_sweep({{10, 0.98765}}, {.keep_best = 1, .metric = "accuracy"});
  fs::resize_file(damaged, 5);
  fs::last_write_time(damaged, fs::file_time_type::clock::now() - 150s);
  CHECK(run.listing() ==
        " step  epoch    size  validation/eval_op/accuracy/accuracy  age\n"
        "    5    0.5  4.0 MB                                   0.5  2 days ago\n"
        "   10    1.0  1.0 MB                                0.9877  3 h ago     best\n"
        "   20    2.0  1.0 MB                                   nan  90 s ago\n"
        "1,234      -     5 B                                     -  2 min ago   latest, damaged: "
        "it has 5 bytes, too few for a safetensors file\n");
  const auto list =
      nlohmann::json::parse(run_in(run.folder(), "stepop checkpoints run --json").out);
  REQUIRE(list.size() == 4);
  CHECK(list[1]["step"] == 10);
  CHECK(list[1]["path"] == "run/train/checkpoints/model-10.safetensors");
  CHECK(list[1]["epoch"] == 1);
  CHECK(list[1]["metric"] == 0.98765);
  CHECK(list[1]["best"] == true);
  CHECK(list[1]["problem"].is_null());
  CHECK(list[2]["metric"].is_null());  // NaN is no number of JSON
  CHECK(list[3]["latest"] == true);
  CHECK(list[3]["epoch"].is_null());
  CHECK(list[3]["problem"] == "damaged: it has 5 bytes, too few for a safetensors file");
}

TEST_CASE("a run that names no metric, or whose config cannot be read, has no column for it") {
  for (const char* config : {"a: 1\n", "a: [\n"}) {
    CAPTURE(config);
    const HandMadeRun run(config);
    run.save(10, 90s);
    CHECK(run.listing() ==
          "step  epoch    size  age\n"
          "  10    1.0  1.0 MB  90 s ago  latest\n");
  }
}

TEST_CASE("a run without checkpoints says so") {
  const HandMadeRun run("a: 1\n");
  CHECK(run.listing() == "run: the run has no checkpoints yet\n");
  fs::remove_all(run.folder().path("run/train"));
  CHECK(run.listing() == "run: the run has no checkpoints yet\n");
}

TEST_CASE("what is no run is refused") {
  const ScratchFolder folder;
  const auto refused = [&](const std::string& words, const std::string& message) {
    const CommandResult result = run_in(folder, "stepop checkpoints" + words);
    CHECK(result.err == "stepop: " + message + "\n");
    CHECK(result.out == "");
    CHECK(result.exit_code == 2);
  };
  fs::create_directory(folder.path("empty"));
  folder.write("file", "");
  refused(" none",
          "stepop checkpoints: none: no such folder; give the folder of a run, logs/<time>_<name>");
  refused(" file",
          "stepop checkpoints: file: no such folder; give the folder of a run, logs/<time>_<name>");
  refused(" empty", "stepop checkpoints: empty: not the folder of a run: it has no configs/");
  fs::create_directories(folder.path("logs/2026-11-21T10-00-00_a/configs"));
  fs::create_directories(folder.path("logs/2026-11-21T11-00-00_b/configs"));
  folder.write("logs/2026-11-21T10-00-00_a/configs/x.yaml", "");
  refused(" logs",
          "stepop checkpoints: logs: not the folder of a run: it has no configs/; did you mean "
          "logs/2026-11-21T11-00-00_b?");
  refused(" logs/2026-11-21T10-00-00_a/configs/x.yaml",
          "stepop checkpoints: logs/2026-11-21T10-00-00_a/configs/x.yaml: no such folder; give the "
          "folder of a run, logs/<time>_<name>; did you mean logs/2026-11-21T10-00-00_a?");
  CHECK(run_in(folder, "stepop checkpoints -h")
            .out.starts_with("stepop checkpoints logs/<time>_<name>\n  the checkpoints of a run"));
  const std::string help =
      "\nstepop checkpoints logs/<time>_<name>; `stepop checkpoints --help` has more";
  refused("", "stepop checkpoints: nothing given" + help);
  refused(" empty --lr 3", "stepop checkpoints does not take --lr" + help);
}

}  // namespace checkpoints_test
}  // namespace stepop
