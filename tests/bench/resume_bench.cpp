// A resume is a jump: how far a run has come costs nothing.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "runtime/train/checkpoint/checkpoint.h"
#include "tests/bench/measure.h"
#include "tests/bench/process.h"
#include "tests/bench/rows.h"
#include "tests/places.h"
#include "tests/scratch_folder.h"

namespace stepop::bench {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kEarly = 10;
constexpr int64_t kLate = 1'000'000;

constexpr auto kCopy = fs::copy_options::recursive | fs::copy_options::copy_symlinks;
const std::vector<std::string> kQuietly = {"--log_ops", "[]", "--datasets/validation", "null"};

std::vector<std::string> words(std::vector<std::string> first, int64_t steps) {
  first.insert(first.begin(), STEPOP_BINARY_DIR "/stepop");
  first.insert(first.end(), kQuietly.begin(), kQuietly.end());
  first.insert(first.end(), {"-t", "--num_steps", std::to_string(steps)});
  return first;
}

/// What a run of that length has logged: metrics, and pictures of each tenth log.
void add_history(const std::string& run) {
  constexpr int64_t kLines = 20'000;
  std::ofstream metrics(run + "/train/metrics.jsonl", std::ios::app);
  const std::string images = run + "/train/train/log_op/";
  fs::create_directories(images);
  for (int64_t line = 1; line <= kLines; ++line) {
    const int64_t step = line * (kLate / kLines);
    const auto number = static_cast<double>(line);
    metrics << fmt::format(
        R"({{"step":{},"epoch":{},"samples":{},"time":{},"train/log_op/loss":{},"train/log_op/accuracy":{},"validation/log_op/loss":{},"validation/log_op/accuracy":{}}})"
        "\n",
        step, number / 23, step * 64, number / 8, 1 / number, 1 - 1 / number, 2 / number,
        1 - 2 / number);
    if (line % 10 == 0) std::ofstream(fmt::format("{}input_{:07}.png", images, step)) << "picture";
  }
}

/// Makes the run `from`, whose last checkpoint is at kEarly, one that seems to be at kLate.
void make_late(const std::string& from, const std::string& to) {
  fs::copy(from, to, kCopy);
  const std::string folder = to + "/train/checkpoints";
  const std::string early = folder + "/" + checkpoint_name(kEarly);
  Checkpoint checkpoint = load_checkpoint(early);
  Progress& progress = checkpoint.progress;
  progress.global_step = kLate;
  progress.epoch = kLate / progress.batches_per_epoch;
  progress.batch = kLate % progress.batches_per_epoch;
  progress.samples_seen = kLate * 64;
  save_checkpoint(folder, checkpoint);
  fs::remove(early);
  add_history(to);
}

/// The seconds of a start that resumes `run` for one step; the run itself stays as it is.
double time_resume(const std::string& run, int64_t step) {
  const ScratchFolder scratch;
  fs::copy(run, scratch.path("run"), kCopy);
  return time_program(words({"-p", "run"}, step + 1), scratch.path());
}

}  // namespace

void bench_resume() {
  print_header("Resume: from the command line to one more step, done and saved");
  const ScratchFolder scratch;
  time_program(words({"-b", STEPOP_SOURCE_DIR "/configs/digits.yaml", "-n", "bench"}, kEarly),
               scratch.path());
  const std::string early = fs::directory_iterator(scratch.path("logs"))->path().string();
  const std::string late = scratch.path("late");
  make_late(early, late);
  const auto times = take_turns(
      9, {[&] { return time_resume(late, kLate); }, [&] { return time_resume(early, kEarly); }});
  print_row({"from step 1,000,000", "from step 10", speedup(times[0], times[1]),
             duration_text(median(times[0])), duration_text(median(times[1]))});
}

}  // namespace stepop::bench
