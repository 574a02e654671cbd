#include "runtime/tools/report/frames.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/scratch_folder.h"

namespace stepop {
namespace frames_test {

std::vector<int64_t> steps_of(const FrameSeries& series) {
  std::vector<int64_t> steps;
  for (const auto& [step, path] : series.paths) steps.push_back(step);
  return steps;
}

TEST_CASE("pictures are found by split, op, name and step; what is superseded is not") {
  const ScratchFolder folder;
  for (const char* name :
       {"train/train/log_op/input_0000100.png", "train/train/log_op/input_0000020.png",
        "train/train/log_op/deep/a_b_0000001.png", "train/train/log_op/voice/0_0000001.wav",
        "train/train/log_op/no_step.png",
        "train/superseded/2026-11-21T10-00-00/train/log_op/input_0000200.png",
        "train/non_finite/5/input_0000005.png", "train/validation/log_op/input_0000100.txt",
        "eval/2026-11-21T10-00-00_a/100/examples/best_0000100.png",
        "eval/2026-11-22T10-00-00_a/100/examples/best_0000100.png",
        "eval/2026-11-22T10-00-00_a/100/confusion.png",
        "eval/2026-11-22T10-00-00_a/100/report.txt"}) {
    folder.write(name, "x");
  }
  const RunFrames frames = find_frames(folder.path());
  REQUIRE(frames.logged.size() == 3);
  CHECK(frames.logged[0].title == "train/log_op/deep/a_b");
  CHECK(frames.logged[1].title == "train/log_op/input");
  CHECK((steps_of(frames.logged[1]) == std::vector<int64_t>{20, 100}));
  CHECK(frames.logged[2].title == "train/log_op/voice/0");
  REQUIRE(frames.evaluated.size() == 2);
  CHECK(frames.evaluated[0].title == "confusion");
  CHECK(frames.evaluated[1].title == "examples/best");
  CHECK(frames.evaluated[1].paths.at(100) ==
        folder / "eval/2026-11-22T10-00-00_a/100/examples/best_0000100.png");
  REQUIRE(frames.texts.size() == 1);
  CHECK(frames.texts[0].title == "report.txt");
  CHECK(find_frames(folder / "none").logged.empty());
}

TEST_CASE("what is too large is thinned out evenly, the first and the last staying") {
  const ScratchFolder folder;
  std::vector<FrameSeries> series(2);
  for (int step = 0; step < 100; ++step) {
    series[0].paths[step] = folder.write(fmt::format("a{}", step), std::string(100, 'x'));
    if (step < 3) {
      series[1].paths[step] = folder.write(fmt::format("b{}", step), std::string(100, 'x'));
    }
  }
  const auto all = series;
  fit_frames(series, 10'300);
  CHECK(series[0].paths.size() == 100);
  CHECK(series[0].left_out == 0);

  fit_frames(series, 2'000);
  const auto steps = steps_of(series[0]);
  CHECK(steps.size() + series[1].paths.size() <= 20);
  CHECK(steps.size() >= 10);
  CHECK(series[1].paths.size() == 3);
  CHECK(series[0].left_out == 100 - steps.size());
  CHECK(steps.front() == 0);
  CHECK(steps.back() == 99);
  for (size_t i = 1; i < steps.size(); ++i) CHECK(steps[i] - steps[i - 1] <= 11);

  // A frame that is too large by itself is no reason to leave out others.
  series = all;
  series.emplace_back().paths[7] = folder.write("large", std::string(100'000, 'x'));
  fit_frames(series, 20'000);
  CHECK(series[0].paths.size() == 100);
  CHECK(series[1].paths.size() == 3);
  CHECK(series[2].paths.empty());
  CHECK(series[2].left_out == 1);
  // Unless only a part of it is shown.
  series = all;
  series.emplace_back().paths[7] = folder.write("large", std::string(100'000, 'x'));
  fit_frames(series, 20'000, 1'000);
  CHECK(series[0].paths.size() == 100);
  CHECK(series[2].paths.size() == 1);

  series = all;
  fit_frames(series, 200);
  CHECK((steps_of(series[0]) == std::vector<int64_t>{99}));
  CHECK((steps_of(series[1]) == std::vector<int64_t>{2}));

  series = all;
  fit_frames(series, 150);  // not even one of each
  CHECK(series[0].paths.size() + series[1].paths.size() == 1);
  CHECK(series[0].left_out + series[1].left_out == 102);
}

}  // namespace frames_test
}  // namespace stepop
