// Hooks that a config names: their order, what they track, and what they ask for.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/train/iterator/hook.h"
#include "tests/message_of.h"
#include "tests/runtime/train/loop/trainer.h"
#include "tests/test_run.h"

namespace stepop {
namespace hooks_test {

std::vector<std::string>& events() {
  static std::vector<std::string> list;
  return list;
}

/// Asks for `what` after the step `at`, or once an evaluation of it is over, and counts its steps.
class AskingHook : public Hook {
 public:
  AskingHook(const Config& params, const Context& context)
      : context_(context),
        name_(params.get("name", "asking")),
        what_(params.get("what", "nothing")),
        at_(params.get<int64_t>("at", -1)),
        after_evaluation_(params.get("after_evaluation", false)) {
    context.track("steps", steps_);
  }

  void initialize() override { events().push_back(fmt::format("{} initialize {}", name_, steps_)); }
  void before_training() override {
    events().push_back(fmt::format("{} {} {}", name_, context_.run.name, context_.run.is_resuming));
    CHECK(std::filesystem::is_directory(context_.run.folder + "/train"));
  }
  void after_training() override { events().push_back(fmt::format("{} {}", name_, steps_)); }
  void after_batch(const Batch& batch, const OrderedMap<Scalars>& results) override {
    CHECK(batch.size() > 0);
    CHECK(results.contains("train_op"));
    ++steps_;
  }
  void after_step(int64_t step) override {
    if (what_ == "fail" && step == at_) throw 3;
    if (what_ == "throw" && step == at_) throw Error("enough");
    if (step == at_ && !after_evaluation_) ask();
  }
  void after_evaluation(int64_t step) override {
    events().push_back(fmt::format("{} evaluation {}", name_, step));
    if (step == at_ && after_evaluation_) ask();
  }
  void after_checkpoint(const std::string& path) override {
    events().push_back(fmt::format("{} {}", name_, path.substr(path.rfind('/') + 1)));
  }
  void after_log(int64_t step, const OrderedMap<double>& scalars) override {
    const bool is_evaluation = scalars.begin()->first.starts_with("validation/eval_op/");
    events().push_back(fmt::format("{} {} {}", name_, is_evaluation ? "judged" : "log", step));
  }

 private:
  void ask() {
    if (what_ == "log") request_log();
    if (what_ == "checkpoint") request_checkpoint();
    if (what_ == "evaluation") request_evaluation();
    if (what_ == "stop") request_stop("it is enough");
  }

  const Context& context_;
  std::string name_;
  std::string what_;
  int64_t at_;
  bool after_evaluation_;
  int64_t steps_ = 0;
};

STEPOP_REGISTER_HOOK(AskingHook, {"For tests.",
                                  {{"name", "asking", ""},
                                   {"what", "nothing", ""},
                                   {"at", "-1", ""},
                                   {"after_evaluation", "false", ""}}});

/// Eight steps, without logs, checkpoints and evaluations but those of the end.
std::string config_with(const std::string& hooks) {
  return trainer_config(
      "num_steps: 8\nlog_ops: [{op: train/log_op, when: {every: 1000, at_end: true}}]\n"
      "ckpt_freq: 1000\neval_hook: {freq: 1000}\nhooks: " +
      hooks);
}

std::vector<std::string> events_of(TestRun& run) {
  events().clear();
  run.train();
  return events();
}

std::vector<std::string> events_of(const std::string& hooks) {
  TestRun run(config_with(hooks));
  return events_of(run);
}

using Events = std::vector<std::string>;

TEST_CASE("hooks of a config are called in its order, a null is off, a list has no names") {
  CHECK(
      events_of("{b: {class: AskingHook, name: b}, off: null, a: {class: AskingHook, name: a}}") ==
      Events{"b initialize 0", "a initialize 0", "b test false", "a test false",
             "b model-4.safetensors", "a model-4.safetensors", "b log 8", "a log 8",
             "b model-8.safetensors", "a model-8.safetensors", "b judged 8", "a judged 8",
             "b evaluation 8", "a evaluation 8", "b 8", "a 8"});
  TestRun two(config_with("[AskingHook, AskingHook]"));
  two.train();
  const State state = two.checkpoint(8);
  CHECK(state.at("hooks/AskingHook/steps.value").item<int64_t>() == 8);
  CHECK(state.at("hooks/AskingHook_2/steps.value").item<int64_t>() == 8);
  CHECK(message_of([] { TestRun(config_with("5")); }) ==
        "test.yaml:16: hooks: expected a map of names, {name: {class: ...}}, or a list of classes, "
        "found 5");
}

TEST_CASE(
    "a hook asks for a log, a checkpoint, an evaluation, and gets it at the end of the step") {
  const auto asked = [](const std::string& what) {
    Events happened = events_of("{a: {class: AskingHook, name: a, at: 3, what: " + what + "}}");
    REQUIRE(happened.size() > 7);
    // What comes before and after is as in any training; an epoch has four steps.
    CHECK(happened[happened.size() - 6] == "a model-4.safetensors");
    return Events(happened.begin() + 2, happened.end() - 6);
  };
  CHECK(asked("nothing") == Events{});
  CHECK(asked("log") == Events{"a log 3"});
  CHECK(asked("checkpoint") == Events{"a model-3.safetensors"});
  CHECK(asked("evaluation") == Events{"a model-3.safetensors", "a judged 3", "a evaluation 3"});
}

TEST_CASE("a hook ends a training as its last step would, and a resume knows it") {
  const std::string config = config_with("{stop: {class: AskingHook, what: stop, at: 3}}");
  TestRun run(config);
  const StopReason reason = run.train();
  CHECK(reason.kind == StopReason::Kind::kHook);
  CHECK(reason.text == "the hook stop: it is enough");
  CHECK(run.checkpoints() == std::vector<int64_t>{3});
  CHECK(run.metrics().size() == 2);  // the log at the end, and the evaluation
  TestRun again(config, run, 3);
  const StopReason before = again.train();
  CHECK(before.kind == StopReason::Kind::kHook);
  CHECK(before.text ==
        "the hook stop: it is enough; it ended this way before: change the config to continue it");
  CHECK(again.session.position().global_step == 3);
  TestRun more(config_with("{stop: {class: AskingHook, what: stop, at: 5}}"), run, 3);
  more.train();
  CHECK(more.session.position().global_step == 5);
}

TEST_CASE("a hook that asks for a stop in an evaluation ends the training there") {
  TestRun run(trainer_config(
      "num_steps: 8\nckpt_freq: 1000\neval_hook: {freq: 2}\n"
      "hooks: {stop: {class: AskingHook, what: stop, at: 4, after_evaluation: true}}"));
  CHECK(run.train().text == "the hook stop: it is enough");
  CHECK(run.session.position().global_step == 4);
}

TEST_CASE("what hooks track is restored; one that is new begins anew, one that is gone is told") {
  TestRun run(config_with("{a: {class: AskingHook, name: a}, b: {class: AskingHook, name: b}}"));
  run.train();
  std::string config =
      config_with("{b: {class: AskingHook, name: b}, c: {class: AskingHook, name: c}}");
  config.replace(config.find("num_steps: 8"), 12, "num_steps: 10");
  TestRun again(config, run, 8);
  const std::string path = run.checkpoint_path(8);
  CHECK(again.session.warnings() ==
        "test.yaml:14: ckpt_freq: is never due in this training of 10 steps\n" + path +
            ": it has a state of hooks/a/steps, which no hook tracks now\n" + path +
            ": it has no state of hooks/c/steps, which begins anew");
  const Events happened = events_of(again);
  CHECK(happened[0] == "b initialize 8");
  CHECK(happened[1] == "c initialize 0");
  CHECK(happened[2] == "b test true");
  CHECK(happened[happened.size() - 2] == "b 10");
  CHECK(happened.back() == "c 2");
}

TEST_CASE("an evaluation makes no hooks, and knows the keys that they declare") {
  const std::string hooks = "{a: {class: AskingHook, at: 1}}";
  events().clear();
  const Session session(test_config(config_with(hooks)), /*train=*/false, /*debug=*/false,
                        /*allow_unknown=*/false);
  CHECK(session.hooks().empty());
  for (const bool train : {true, false}) {
    const std::string misspelt = config_with("{a: {class: AskingHook, att: 1}}");
    CHECK(message_of([&] {
            Session(test_config(misspelt), train, false, false);
          }).find("unknown key \"hooks/a/att\": did you mean \"hooks/a/at\"?") !=
          std::string::npos);
  }
}

TEST_CASE("an error in a hook says where it arose") {
  const auto error = [](const std::string& what) {
    return message_of([&] { events_of("{mine: {class: AskingHook, at: 2, what: " + what + "}}"); });
  };
  CHECK(error("throw") == "hooks/mine/after_step: enough");
  CHECK(error("fail") == "hooks/mine/after_step: threw the number 3");
}

}  // namespace hooks_test
}  // namespace stepop
