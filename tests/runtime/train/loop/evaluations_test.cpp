// Several evaluations of one training.
#include <doctest/doctest.h>

#include <filesystem>

#include "eval_out/read/find_evaluations.h"
#include "runtime/core/log/metrics_file.h"
#include "tests/message_of.h"
#include "tests/runtime/train/loop/trainer.h"
#include "tests/same_state.h"
#include "tests/test_run.h"
#include "tests/without_clock.h"

namespace stepop {
namespace evaluations_test {

namespace fs = std::filesystem;

/// Epochs of 4 steps.
const std::string kTwo = trainer_config(
    "num_steps: 8\n"
    "eval_hook: {eval_callbacks: {matrix: confusion_matrix}}\n"
    "evaluations:\n"
    "  fast: {freq: 2, max_batches: 1}\n"
    "  seen: {eval_op: train/eval_op, freq: 1e, eval_callbacks: {accuracy: null, classes: "
    "confusion_matrix}}\n"
    "  off: null");

/// The steps at which a number was logged.
std::vector<int64_t> steps_of(const TestRun& run, const std::string& name) {
  std::vector<int64_t> steps;
  for (const auto& line : run.metrics()) {
    if (line.contains(name)) steps.push_back(line["step"]);
  }
  return steps;
}

std::string outputs(const TestRun& run, int64_t step, const std::string& name = "") {
  return run.root() + "/eval/2026-11-21T10-00-00_test/" + std::to_string(step) +
         (name.empty() ? "" : "/" + name) + "/outputs.h5";
}

TEST_CASE("each runs when it is due, over its own split and with its own callbacks") {
  TestRun run(kTwo);
  run.session.check();
  run.train();
  CHECK(steps_of(run, "validation/eval_op/loss") == (std::vector<int64_t>{4, 8}));
  CHECK(steps_of(run, "fast/loss") == (std::vector<int64_t>{2, 4, 6, 8}));
  CHECK(steps_of(run, "seen/loss") == (std::vector<int64_t>{4, 8}));
  CHECK(run.checkpoints() == (std::vector<int64_t>{2, 4, 6, 8}));
  CHECK(EvalFile(outputs(run, 4)).rows() == 10);
  CHECK(EvalFile(outputs(run, 4, "fast")).rows() == 4);
  CHECK(EvalFile(outputs(run, 4, "seen")).rows() == 29);
  CHECK_FALSE(fs::exists(outputs(run, 2)));
  const std::string folder = fs::path(outputs(run, 8)).parent_path().string();
  CHECK(fs::exists(folder + "/matrix"));
  CHECK(fs::exists(folder + "/seen/classes"));

  // What a later look at one of the files finds is that evaluation alone.
  const auto stored = EvalFile(outputs(run, 8, "seen")).attributes();
  const auto config = parse_yaml(std::get<std::string>(*stored.find("config")), {"stored", 0});
  CHECK(config.find("eval_hook/eval_op")->as_text() == "train/eval_op");
  CHECK(config.find("evaluations") == nullptr);
  CHECK(std::get<std::string>(*stored.find("evaluation")) == "seen");

  const auto found = find_evaluations(run.root());
  std::vector<std::string> names;
  for (const auto& each : found) names.push_back(std::to_string(each.step) + "/" + each.name);
  CHECK(names == std::vector<std::string>{"2/", "2/fast", "4/", "4/fast", "4/seen", "6/", "6/fast",
                                          "8/", "8/fast", "8/seen"});
  CHECK(fs::path(find_outputs(run.root())) == outputs(run, 8));
}

TEST_CASE("how often others evaluate changes no training") {
  const auto end_of = [](const std::string& config) {
    TestRun run(config);
    run.train();
    return run.checkpoint(8);
  };
  CHECK(differences(end_of(kTwo), end_of(trainer_config("num_steps: 8\neval_hook: null"))) == "");
}

TEST_CASE("a start that was interrupted between two of them makes the rest") {
  TestRun before(kTwo);
  before.train();
  const auto lines = before.metrics();
  // As it was killed at step 4, after the first of three evaluations.
  const std::string folder = before.root() + "/eval/2026-11-21T10-00-00_test/";
  for (const char* gone : {"4/fast", "4/seen", "6", "8"}) fs::remove_all(folder + gone);
  fs::remove(before.checkpoint_path(6));
  fs::remove(before.checkpoint_path(8));
  split_metrics(before.root() + "/train/metrics.jsonl", 3, before.root() + "/rest");
  const auto written = fs::last_write_time(outputs(before, 4));

  TestRun after(kTwo, before, 4);
  after.train();
  CHECK(fs::last_write_time(outputs(before, 4)) == written);
  auto again = after.metrics();
  REQUIRE(again.size() == lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    CAPTURE(i);
    CHECK(without_clock(again[i]) == without_clock(lines[i]));
  }
}

TEST_CASE("the best checkpoint may be chosen by one that is rare, early stopping too") {
  const std::string config = trainer_config(
      "num_steps: 8\nckpt_freq: 2\n"
      "checkpoints: {keep_last: 1, metric: late/loss, mode: min}\n"
      "stop_when: {metric: late/loss, mode: min, patience: 100s}\n"
      "evaluations: {late: {freq: 6}}");
  TestRun run(config);
  run.session.check();
  run.train();
  CHECK(steps_of(run, "late/loss") == (std::vector<int64_t>{6, 8}));
}

TEST_CASE("a metric that no evaluation gives is an error once all of them ran") {
  const auto message = [](const std::string& metric) {
    return message_of([&] {
      TestRun run(trainer_config("num_steps: 8\nstop_when: {metric: " + metric +
                                 ", mode: min, patience: 100s}\nevaluations: {late: {freq: 6}}"));
      run.train();
    });
  };
  CHECK(message("late/loss") == "no error");
  CHECK(message("late/los").find("no log and no evaluation gives a number \"late/los\"") !=
        std::string::npos);
}

TEST_CASE("what an evaluation cannot be is refused with its place") {
  const auto message = [](const std::string& more) {
    return message_of([&] { TestRun(trainer_config("num_steps: 1\n" + more)); });
  };
  CHECK(message("evaluations: null") == "no error");
  CHECK(message("evaluations: [a]")
            .find("evaluations: expected a map of names and evaluations, "
                  "such as {test: {eval_op: test/eval_op, freq: 5e}}") != std::string::npos);
  CHECK(message("evaluations: {a: b}")
            .find("evaluations/a: expected a map, such as {eval_op: test/eval_op}, or null, found "
                  "\"b\"") != std::string::npos);
  CHECK(message("evaluations: {a b: {}}").find("has letters, digits, _ and - only") !=
        std::string::npos);
  CHECK(message("evaluations: {runtime: {}}").find("what the runtime logs has the same name") !=
        std::string::npos);
  CHECK(message("eval_hook: {eval_callbacks: {a: accuracy}}\nevaluations: {a: {}}")
            .find("a callback of eval_hook, beside whose files it writes, has the same name") !=
        std::string::npos);
  CHECK(message("evaluations: {a: {eval_op: test/eval_op}}").find("needs datasets/test") !=
        std::string::npos);
  CHECK(message("evaluations: {a: {frequency: 2}}").find("evaluations/a/frequency") !=
        std::string::npos);
}

}  // namespace evaluations_test
}  // namespace stepop
