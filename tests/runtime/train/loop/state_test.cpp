// What must survive a restart, entry by entry: what a checkpoint holds is exactly the list below;
// with all of it a resumed run ends with the same bits and the same metrics; and with any entry at
// the value that a fresh start has it ends otherwise, so that nothing on the list is there in vain
// and leaving it out would be seen. Restoring into a fresh process is tests/cli/kill_test.cpp's.
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <limits>
#include <map>
#include <regex>
#include <thread>

#include "tests/message_of.h"
#include "tests/runtime/train/loop/state_components.h"
#include "tests/same_state.h"
#include "tests/test_run.h"
#include "tests/without_clock.h"

namespace stepop {
namespace state_test {

/// An epoch has 8 batches, so 4 steps. The metric is never better than at step 3, so the training
/// ends at step 15.
constexpr const char* kConfig = R"(
iterator: TestStateTrainer
networks: {encoder: {class: TestStateEncoder}, head: {class: TestStateHead}}
datasets:
  train:
    class: TestSlowStart
    dataset: {class: Augment, shift: 1, noise: 0.1, dataset: {class: Synthetic, size: 31, shape: [1, 3, 3], classes: 3}}
  validation: {class: Synthetic, size: 10, shape: [1, 3, 3], classes: 3, seed: 5}
batch_size: 4
accumulate: 2
encoder_optimizer:
  class: SGD
  momentum: 0.9
  lr: {class: cosine, from: 1e-2, to: 1e-4, steps: 12}
  groups: [{match: bias, lr: 3e-3}]
head_optimizer: {class: Adam, lr: 1e-2, groups: [{match: bias, weight_decay: 0.1}]}
on_nan: skip
ema: {decay: 0.9}
eval_weights: ema
stop_when: {metric: validation/eval_op/age, patience: 12s, mode: min}
num_steps: 30
num_threads: 1
n_data_processes: 2
log_freq: {every: 5}
ckpt_freq: 7
eval_hook: {freq: 3}
)";

/// The checkpoint that a run resumes from: in the middle of an epoch, after a log and an
/// evaluation.
constexpr int64_t kStep = 7;
constexpr int64_t kEvaluated = 6;  ///< A checkpoint that an evaluation follows.
constexpr int64_t kLast = 15;

/// What a run ends with: everything but times.
struct End {
  int64_t step = 0;
  State state;
  std::vector<std::string> metrics;  ///< The lines of the steps after the resume.

  bool operator==(const End& other) const {
    return step == other.step && metrics == other.metrics &&
           differences(state, other.state).empty();
  }
};

std::vector<std::string> metrics_of(const TestRun& run, size_t first_line) {
  std::vector<std::string> lines;
  for (auto& line : run.metrics()) {
    if (first_line > 0) {
      --first_line;
    } else {
      lines.push_back(without_clock(line).dump());
    }
  }
  return lines;
}

End end_of(TestRun& run) {
  const size_t lines =
      std::filesystem::exists(run.root() + "/train/metrics.jsonl") ? run.metrics().size() : 0;
  run.train();
  End end{run.session.position().global_step, {}, metrics_of(run, lines)};
  end.state = run.checkpoint(end.step);
  for (const char* time : {"stop_when.minutes", "stop_when.last_minutes"}) end.state.erase(time);
  return end;
}

/// The run that was never stopped.
struct Whole {
  Whole() : run(kConfig), fresh(run.session.context().tracker.save()) {
    for (auto& [name, tensor] : fresh) tensor = tensor.clone();
    end = end_of(run);
    // Runs that resume from them write their own.
    for (const int64_t step : {kEvaluated, kStep}) {
      saved.emplace(step, load_checkpoint(run.checkpoint_path(step)));
    }
  }

  /// What it ends with, as a run sees it that resumes from `step`.
  End end_after(int64_t step) const {
    End after = end;
    std::erase_if(after.metrics, [&](const std::string& line) {
      return nlohmann::json::parse(line)["step"] <= step;
    });
    return after;
  }

  TestRun run;
  State fresh;  ///< Of a start at step 0.
  End end;
  std::map<int64_t, Checkpoint> saved;
};

const Whole& whole() {
  static const Whole run;
  return run;
}

const Checkpoint& saved(int64_t step) { return whole().saved.at(step); }

End resumed(const Checkpoint& checkpoint) {
  TestRun run(kConfig, whole().run, checkpoint);
  return end_of(run);
}

/// Tensors of a checkpoint that belong together. Within a group there are few that a resumed run
/// could do without: the running statistics beside the averages, which are the network's, put there
/// for who takes the averages out of the file; and the minutes of stop_when, which are times.
struct Group {
  std::string what;
  std::string names;  ///< A regular expression of all names.
  int count;
};

const std::vector<Group>& groups() {
  static const std::vector<Group> all = {
      {"parameters of a network", R"(encoder\.first\.bias|encoder\.norm\.(weight|bias))", 3},
      {"parameters of another network", R"(head\.linear\.(weight|bias))", 2},
      {"tied weights, under both names", R"(encoder\.(first\.weight|tied))", 2},
      {"running statistics", R"(encoder\.norm\.running_(mean|var))", 2},
      {"the count of batches of a norm", R"(encoder\.norm\.num_batches_tracked)", 1},
      {"momenta of SGD", R"(encoder_optimizer\..*\.momentum_buffer)", 4},
      {"step counts of SGD, which know a first update", R"(encoder_optimizer\..*\.step)", 4},
      {"first moments of Adam", R"(head_optimizer\..*\.exp_avg)", 2},
      {"second moments of Adam", R"(head_optimizer\..*\.exp_avg_sq)", 2},
      {"step counts of Adam", R"(head_optimizer\..*\.step)", 2},
      {"each optimizer's updates", R"((encoder|head)_optimizer\.count)", 2},
      {"the step of each optimizer's last rate", R"((encoder|head)_optimizer\.lr_step)", 2},
      {"each optimizer's updates that were left out", R"((encoder|head)_optimizer\.skipped)", 2},
      {"averages of the weights, and the running statistics that are put beside them", R"(ema_.*)",
       10},
      {"random state", R"(random\.cpu)", 1},
      {"means since the last log", R"(train_means\..*)", 2},
      {"the best value of stop_when and its step", R"(stop_when\..*)", 7},
      {"a number of the iterator", R"(seen\.value)", 1},
      {"a real number of the iterator", R"(level\.value)", 1},
      {"a tensor of the iterator", R"(center\.value)", 1},
      {"a tensor of the iterator that came later", R"(last\.value)", 1},
  };
  return all;
}

bool belongs(const Group& group, const std::string& name) {
  return std::regex_match(name, std::regex(group.names));
}

TEST_CASE("a checkpoint holds exactly what is on the list") {
  const State state = saved(kStep).tensors;
  for (const auto& [name, tensor] : state) {
    CAPTURE(name);
    CHECK(std::count_if(groups().begin(), groups().end(),
                        [&](const Group& group) { return belongs(group, name); }) == 1);
  }
  for (const auto& group : groups()) {
    CAPTURE(group.what);
    CHECK(std::count_if(state.begin(), state.end(), [&](const auto& entry) {
            return belongs(group, entry.first);
          }) == group.count);
  }
  CHECK(state.at("encoder.tied").is_alias_of(state.at("encoder.first.weight")));

  const auto json = nlohmann::ordered_json::parse(saved(kStep).progress.to_json());
  std::string fields;
  for (const auto& [key, value] : json.items()) fields += key + " ";
  CHECK(fields ==
        "global_step epoch batch batches_per_epoch train_examples samples_seen seconds "
        "batches_taken evaluation_folder ");
}

TEST_CASE("the run has what the list is about") {
  CHECK(whole().end.step == kLast);
  CHECK(calls_in_workers() > 0);  // the workers did start
  const Progress progress = saved(kStep).progress;
  CHECK(progress.epoch == 1);
  CHECK(progress.batch == 6);
  CHECK(progress.batches_taken == std::map<std::string, int64_t>{{"validation", 1}});
  CHECK(progress.evaluation_folder == "");
  CHECK(saved(kStep).tensors.at("head_optimizer.skipped").item<int64_t>() == 1);
  CHECK(saved(kStep).tensors.at("head_optimizer.count").item<int64_t>() == 6);
}

TEST_CASE("with all of it a run ends with the same bits and metrics") {
  for (const int64_t step : {kStep, kEvaluated}) {
    CAPTURE(step);
    const End end = resumed(saved(step));
    CHECK(end.step == kLast);
    CHECK(differences(end.state, whole().end.state) == "");
    CHECK(end.metrics == whole().end_after(step).metrics);
  }
}

TEST_CASE("with a tensor of the checkpoint at its fresh value a run ends otherwise") {
  const End expected = whole().end_after(kStep);
  for (const auto& group : groups()) {
    CAPTURE(group.what);
    // It shows where an update is not due in each step: due_logs_test.cpp.
    if (group.names.ends_with("lr_step")) continue;
    Checkpoint checkpoint = saved(kStep);
    std::erase_if(checkpoint.tensors,
                  [&](const auto& entry) { return belongs(group, entry.first); });
    for (const auto& [name, tensor] : whole().fresh) {
      if (belongs(group, name)) checkpoint.tensors[name] = tensor;
    }
    const bool ends_otherwise = !(resumed(checkpoint) == expected);
    CHECK(ends_otherwise);
  }
}

/// The numbers that only tell times, or refuse what does not fit, end no run otherwise; what they
/// do is checked instead.
TEST_CASE("with a number of the progress at its fresh value a run ends otherwise") {
  const auto ends_otherwise = [](int64_t step, const auto& change) {
    Checkpoint checkpoint = saved(step);
    change(checkpoint.progress);
    return !(resumed(checkpoint) == whole().end_after(step));
  };
  CHECK(ends_otherwise(kStep, [](Progress& progress) { progress.global_step = 0; }));
  CHECK(ends_otherwise(kStep, [](Progress& progress) { progress.epoch = 0; }));
  CHECK(ends_otherwise(kStep, [](Progress& progress) { progress.batch = 0; }));
  CHECK(ends_otherwise(kStep, [](Progress& progress) { progress.samples_seen = 0; }));
  CHECK(ends_otherwise(kStep, [](Progress& progress) { progress.batches_taken.clear(); }));
  CHECK_FALSE(ends_otherwise(kStep, [](Progress& progress) { progress.seconds = 0; }));
  CHECK_FALSE(ends_otherwise(kStep, [](Progress& progress) { progress.train_examples = 0; }));
  const auto message = [](const auto& change) {
    return message_of([&] {
      Checkpoint checkpoint = saved(kStep);
      change(checkpoint.progress);
      resumed(checkpoint);
    });
  };
  CHECK(message([](Progress& progress) {
          progress.train_examples = 32;
        }).find("taken from a training on 32 examples; datasets/train now has 31") !=
        std::string::npos);
  CHECK(message([](Progress& progress) {
          progress.batches_per_epoch = 0;
        }).find("taken in the middle of an epoch of 0 batches") != std::string::npos);
  TestRun later(kConfig, whole().run, saved(kStep));
  CHECK(later.session.position().seconds > 0);
}

TEST_CASE("an evaluation that follows a checkpoint is made up for by the name that is in it") {
  class Fail : public Hook {
   public:
    void before_evaluation(int64_t step) override {
      if (step == kEvaluated) throw Error("the power is gone");
    }
  };
  Fail fail;
  TestRun stopped(kConfig);
  CHECK(message_of([&] { stopped.train({&fail}); }) == "the power is gone");
  const Checkpoint whole_one = load_checkpoint(stopped.checkpoint_path(kEvaluated));
  CHECK(whole_one.progress.evaluation_folder.ends_with("/6"));
  Checkpoint without = whole_one;
  without.progress.evaluation_folder.clear();

  std::vector<std::string> expected = whole().end_after(kEvaluated - 1).metrics;
  TestRun lacks(kConfig, stopped, without);
  CHECK(end_of(lacks).metrics == std::vector<std::string>(expected.begin() + 1, expected.end()));
  TestRun has(kConfig, stopped, whole_one);
  CHECK(end_of(has).metrics == expected);
}

}  // namespace state_test
}  // namespace stepop
