// How a training ends: by itself, with the last evaluation and what is due at the end, or by an
// error, with what was done until then saved.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <stdexcept>

#include "runtime/train/iterator/iterator.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/optim/update.h"
#include "tests/message_of.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace ending_test {

/// Fails where its config says; counts its hooks and changes its weights in them. `age`, the number
/// of complete steps, is what a training of `mode: min` has seen best at its first log.
class TestEnding : public Iterator {
 public:
  explicit TestEnding(const Context& context)
      : Iterator(context),
        model_(context.network<Network>()),
        update_(context.update()),
        log_fails_at_(config().get("log_fails_at", int64_t{-1})) {
    context.track("epochs", epochs_);
    context.track("steps", steps_);
    context.track("saved", saved_);
    context.track("evaluations", evaluations_);
    context.track("evaluated", evaluated_);
  }

  StepOps step_op(const Batch& batch) override {
    const at::Tensor outputs = model_->forward(batch["image"]);
    const at::Tensor loss = (outputs * at::rand({1}, outputs.options())).square().mean();
    const auto age = static_cast<double>(global_step());
    const int64_t size = batch.size();
    const auto first = static_cast<double>(batch.indices().front());
    return {.train_op = [=, this] { update_.step(loss); },
            .log_op =
                [=, this] {
                  if (get_split() == "validation" && global_step() == log_fails_at_) {
                    throw std::runtime_error("a torn page");
                  }
                  return Logs{.scalars = {{"age", age}, {"first_index", first}}};
                },
            .eval_op =
                [=, this] {
                  ++evaluated_;
                  return EvalOutputs{.labels = {{"age", at::full({size}, age)}}};
                }};
  }

  void before_epoch(int64_t) override { move_weights(++epochs_); }
  void before_step(int64_t) override { move_weights(++steps_); }
  void after_step(int64_t) override { move_weights(1); }
  void after_epoch(int64_t) override { move_weights(2); }
  void after_checkpoint(const std::string&) override { move_weights(++saved_); }
  void after_evaluation(int64_t) override { move_weights(++evaluations_); }

 private:
  /// By random numbers.
  void move_weights(int64_t factor) {
    const at::NoGradGuard no_grad;
    for (auto& parameter : model_->parameters()) {
      parameter.add_(at::rand({}, parameter.options()) * 0.001 * static_cast<double>(factor));
    }
  }

  std::shared_ptr<Network> model_;
  Update& update_;
  int64_t log_fails_at_;
  int64_t epochs_ = 0;
  int64_t steps_ = 0;
  int64_t saved_ = 0;
  int64_t evaluations_ = 0;
  int64_t evaluated_ = 0;  ///< Batches.
};

/// One example cannot be loaded.
class TestBadImage : public Dataset {
 public:
  explicit TestBadImage(const Config& params)
      : source_(datasets().build(params, "dataset")), bad_(params.get<int64_t>("bad")) {}
  int64_t size() const override { return source_->size(); }
  Example get(int64_t index, Random& random) const override {
    if (index == bad_) throw std::runtime_error("image_37.png: cut short");
    return source_->get(index, random);
  }

 private:
  std::unique_ptr<Dataset> source_;
  int64_t bad_;
};

STEPOP_REGISTER_ITERATOR(TestEnding, {"For tests.", {}});
STEPOP_REGISTER_DATASET(TestBadImage, {"For tests.", {{"dataset", "", ""}, {"bad", "", ""}}});

/// Epochs of 10 batches.
std::string config_with(const std::string& more, int64_t bad = -1) {
  return R"(
iterator: TestEnding
model: {class: MLP, inputs: 4, hidden: [], classes: 2}
datasets:
  train:
    class: TestBadImage
    bad: )" +
         std::to_string(bad) + R"(
    dataset: {class: Synthetic, size: 40, shape: [1, 2, 2], classes: 2}
  validation: {class: Synthetic, size: 10, shape: [1, 2, 2], classes: 2}
samplers: {train: sequential}
batch_size: 4
optimizer: {class: SGD, lr: 0.1, momentum: 0.9}
num_threads: 1
n_data_processes: 0
)" + more +
         "\n";
}

std::vector<int64_t> steps_with(const TestRun& run, const std::string& name) {
  std::vector<int64_t> steps;
  for (const auto& line : run.metrics()) {
    if (line.contains(name)) steps.push_back(line["step"]);
  }
  return steps;
}

constexpr const char* kLogs =
    "log_ops: [{op: train/log_op, when: 1}, {op: validation/log_op, when: {every: 100, at_end: "
    "true}}]\n";

TEST_CASE("early stopping by a log ends with an evaluation and with what is due at the end") {
  TestRun run(
      config_with(std::string(kLogs) +
                  "num_steps: 30\nstop_when: {metric: train/log_op/age, mode: min, patience: 5s}"));
  CHECK(run.train().kind == StopReason::Kind::kMetric);
  CHECK(run.session.position().global_step == 6);
  CHECK(run.checkpoints() == std::vector<int64_t>{6});
  CHECK(steps_with(run, "validation/eval_op/age") == std::vector<int64_t>{6});
  CHECK(steps_with(run, "validation/log_op/age") == std::vector<int64_t>{6});
}

TEST_CASE("early stopping by an evaluation ends with what is due at the end") {
  TestRun run(config_with(std::string(kLogs) +
                          "num_steps: 30\neval_hook: {freq: 2}\n"
                          "stop_when: {metric: validation/eval_op/age, mode: min, patience: 4s}"));
  CHECK(run.train().kind == StopReason::Kind::kMetric);
  CHECK(run.checkpoints() == (std::vector<int64_t>{2, 4, 6}));
  CHECK(steps_with(run, "validation/eval_op/age") == (std::vector<int64_t>{2, 4, 6}));
  CHECK(steps_with(run, "validation/log_op/age") == std::vector<int64_t>{6});
  CHECK(steps_with(run, "train/log_op/age") == (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
}

TEST_CASE("the last of all steps logs what is due at the end") {
  TestRun run(config_with(std::string(kLogs) + "num_steps: 3"));
  CHECK(run.train().kind == StopReason::Kind::kDone);
  CHECK(steps_with(run, "validation/log_op/age") == std::vector<int64_t>{3});
  CHECK(run.metrics().size() == 5);  // three logs, that of the end, and an evaluation
}

TEST_CASE("an example that cannot be loaded ends a training with the state before its step saved") {
  const std::string more = "num_epochs: 2\neval_hook: null";
  TestRun whole(config_with(more));
  whole.train();
  TestRun broken(config_with(more, 37));
  const std::string message = message_of([&] { broken.train(); });
  CHECK(message.find("image_37.png: cut short") != std::string::npos);
  CHECK(message.ends_with("\nthe state after step 9 was saved"));
  CHECK(broken.checkpoints() == std::vector<int64_t>{9});
  // The hooks before the tenth step were called, and are not called again.
  TestRun after(config_with(more), broken, 9);
  after.train();
  State expected = whole.checkpoint(20);
  State found = after.checkpoint(20);
  CHECK(found.at("steps.value").item<int64_t>() == 20);
  CHECK(found.at("epochs.value").item<int64_t>() == 2);
  // There was one checkpoint more.
  CHECK(found.at("saved.value").item<int64_t>() == 2);
  CHECK(expected.at("saved.value").item<int64_t>() == 1);
}

TEST_CASE("before the first step there is nothing to save") {
  TestRun broken(config_with("num_epochs: 2\nckpt_freq: 100", 0));
  const std::string message = message_of([&] { broken.train(); });
  CHECK(message.find("image_37.png: cut short") != std::string::npos);
  CHECK(message.find("was saved") == std::string::npos);
  CHECK(broken.checkpoints().empty());
}

TEST_CASE("within a step, between its batches, there is nothing whole to save") {
  TestRun broken(config_with("num_epochs: 2\naccumulate: 2\neval_hook: null", 29));  // 2nd of 4
  CHECK(message_of([&] { broken.train(); }).find("was saved") == std::string::npos);
  CHECK(broken.checkpoints().empty());
  TestRun first(config_with("num_epochs: 2\naccumulate: 2\neval_hook: null", 25));  // 1st of 4
  CHECK(message_of([&] { first.train(); }).ends_with("\nthe state after step 3 was saved"));
}

TEST_CASE("a log op that fails ends a training after its step, which is saved, hooks and all") {
  const std::string more =
      "num_steps: 14\neval_hook: {freq: 5}\nckpt_freq: 1\nlog_ops: [train/log_op, {op: "
      "validation/log_op, when: 5}]\n";
  TestRun whole(config_with(more));
  whole.train();
  for (const int64_t step : {5, 10}) {  // the second one ends an epoch
    CAPTURE(step);
    TestRun broken(config_with(more + "log_fails_at: " + std::to_string(step)));
    const std::string message = message_of([&] { broken.train(); });
    CHECK(message.starts_with("validation/log_op: a torn page\nafter step "));
    CHECK(message.ends_with("\nthe state after step " + std::to_string(step) + " was saved"));
    CHECK(broken.checkpoints().back() == step);
    // It resumes as if it had been stopped after that step, with the evaluation that is due.
    TestRun after(config_with(more), broken, step);
    after.train();
    CHECK(differences(after.checkpoint(14), whole.checkpoint(14)) == "");
    CHECK(steps_with(after, "validation/eval_op/age") ==
          steps_with(whole, "validation/eval_op/age"));
  }
}

TEST_CASE("the checkpoint that a failing training saves is copied before it ends") {
  const ScratchFolder folder;
  TestRun run(
      config_with("num_epochs: 2\neval_hook: null\nhooks: {copy: {class: Mirror, command: "
                  "'sleep 0.3; cp {file} " +
                      folder.path() + "/'}}",
                  25));
  CHECK(message_of([&] { run.train(); }).ends_with("\nthe state after step 6 was saved"));
  CHECK(read_bytes(folder / "model-6.safetensors") == read_bytes(run.checkpoint_path(6)));
}

/// The validation examples of later logs, by steps.
std::map<int64_t, double> validation_logs(TestRun& run) {
  std::map<int64_t, double> logs;
  for (const auto& line : run.metrics()) {
    const auto found = line.find("validation/log_op/first_index");
    if (found != line.end()) logs[line.at("step")] = found->get<double>();
  }
  return logs;
}

TEST_CASE(
    "after a log whose data failed, later logs are of the examples that they would have had") {
  const auto config = [](double bad) {
    std::string yaml = config_with(
        "num_steps: 20\neval_hook: null\nlog_ops: [{op: train/log_op, when: 5}, {op: "
        "validation/log_op, when: 5}]\n");
    const std::string before = "validation: ";
    const size_t at = yaml.find(before) + before.size();
    const size_t end = yaml.find('\n', at);
    return yaml.replace(at, end - at,
                        "{class: TestBadImage, bad: " + std::to_string(static_cast<int>(bad)) +
                            ", dataset: " + yaml.substr(at, end - at) + "}");
  };
  TestRun whole(config(-1));
  whole.train();
  auto logs = validation_logs(whole);
  REQUIRE(logs.size() == 4);
  TestRun broken(config(logs.at(10)));
  const std::string message = message_of([&] { broken.train(); });
  CHECK(message.find("cut short") != std::string::npos);
  CHECK(message.ends_with("\nthe state after step 10 was saved"));
  TestRun after(config(-1), broken, 10);
  after.train();
  logs.erase(10);
  CHECK(validation_logs(after) == logs);
}

TEST_CASE("what hooks and evaluations change of what is tracked survives a kill at any time") {
  const std::string more = "num_steps: 23\neval_hook: {freq: 5}\nckpt_freq: 4\n";
  TestRun whole(config_with(more));
  whole.train();
  const State expected = whole.checkpoint(23);
  CHECK(expected.at("evaluations.value").item<int64_t>() == 4);  // without the last one
  CHECK(expected.at("saved.value").item<int64_t>() ==
        static_cast<int64_t>(whole.checkpoints().size()) - 1);
  CHECK(expected.at("evaluated.value").item<int64_t>() == 0);
  for (const int64_t step : whole.checkpoints()) {
    if (step == 23) continue;
    CAPTURE(step);
    TestRun after(config_with(more), whole, step);
    after.train();
    CHECK(differences(after.checkpoint(23), expected) == "");
  }
}

TEST_CASE("the random numbers of hooks around evaluations do not change those of the training") {
  class Draw : public Hook {
   public:
    void after_checkpoint(const std::string&) override { at::rand({3}); }
    void before_evaluation(int64_t) override { at::rand({3}); }
    void after_evaluation(int64_t) override { at::rand({3}); }
  };
  const std::string more = "num_steps: 8\neval_hook: {freq: 3}\nckpt_freq: 2";
  Draw draw;
  TestRun with(config_with(more));
  with.train({&draw});
  TestRun without(config_with(more));
  without.train();
  CHECK(differences(with.checkpoint(8), without.checkpoint(8)) == "");
}

TEST_CASE("an evaluation before the first step is resumed after a kill, in its folder") {
  class Fail : public Hook {
   public:
    void before_evaluation(int64_t) override { throw Error("the power is gone"); }
  };
  const std::string more =
      "num_steps: 3\neval_hook: {freq: {every: 100, at_start: true}}\n"
      "log_freq: {every: 100, at_start: true}";
  Fail fail;
  TestRun killed(config_with(more));
  CHECK(message_of([&] { killed.train({&fail}); }) == "the power is gone");
  REQUIRE(killed.checkpoints() == std::vector<int64_t>{0});
  const Checkpoint saved = load_checkpoint(killed.checkpoint_path(0));
  CHECK(saved.progress.evaluation_folder.ends_with("/0"));
  // So that it is seen which folder is taken.
  Checkpoint elsewhere = saved;
  elsewhere.progress.evaluation_folder = "eval/another_start/0";
  TestRun after(config_with(more), killed, elsewhere);
  after.train();
  CHECK(std::filesystem::exists(after.root() + "/eval/another_start/0/scalars.json"));
  CHECK(steps_with(after, "validation/eval_op/age") == (std::vector<int64_t>{0, 3}));
  CHECK(steps_with(after, "train/log_op/age") == std::vector<int64_t>{0});
}

TEST_CASE("eval_hook: null stays off in a run that resumes") {
  TestRun run(config_with("num_epochs: 1\neval_hook: null"));
  run.train();
  CHECK(steps_with(run, "validation/eval_op/age").empty());
  Session again(Config(parse_yaml(run.session.config_yaml(), {"test.yaml", 0})), true, false,
                false);
  CHECK(again.settings().evaluations.empty());
}

TEST_CASE("a train op with a trigger trains in the steps that it names, also after a resume") {
  const std::string more =
      "num_steps: 11\nckpt_freq: 4\neval_hook: null\ntrain_ops: [{op: train/train_op, when: 3}]\n";
  TestRun whole(config_with(more));
  whole.train();
  CHECK(whole.checkpoint(11).at("optimizer.count").item<int64_t>() == 3);
  CHECK(whole.session.position().samples_seen == 44);
  for (const int64_t step : {4, 8}) {
    TestRun after(config_with(more), whole, step);
    after.train();
    CHECK(differences(after.checkpoint(11), whole.checkpoint(11)) == "");
  }
}

}  // namespace ending_test
}  // namespace stepop
