#include "runtime/train/loop/training_loop.h"
#include "runtime/train/iterator/splits.h"

#include <ATen/TensorOperators.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <thread>

#include "runtime/train/run/signals.h"
#include "tests/message_of.h"
#include "tests/runtime/train/loop/trainer.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace training_loop_test {

/// What a training ends with after `steps`.
State trained(const std::string& more, int64_t steps) {
  TestRun run(trainer_config(more + "\nnum_steps: " + std::to_string(steps)));
  run.train();
  return run.checkpoint(steps);
}

TEST_CASE("the same seed gives the same bits, another seed others") {
  CHECK(differences(trained("", 6), trained("", 6)) == "");
  CHECK(differences(trained("", 6), trained("seed: 2", 6)) != "");
}

TEST_CASE("a resumed run ends with the bits of one that was never stopped") {
  const State whole = trained("", 11);
  for (const int64_t stop : {1, 4, 6}) {
    CAPTURE(stop);
    TestRun before(trainer_config("num_steps: " + std::to_string(stop)));
    before.train();
    TestRun after(trainer_config("num_steps: 11"), before, stop);
    after.train();
    CHECK(differences(after.checkpoint(11), whole) == "");
    CHECK(after.session.position().samples_seen == 29 + 29 + 24);
  }
}

TEST_CASE(
    "batches of a number of tokens are those of a run that was never stopped, of any workers") {
  const std::string sampler = "samplers: {train: {class: lengths, key: class, tokens: 10}}\n";
  const State whole = trained(sampler, 14);  // epochs of five batches of five, and one of four
  std::string config = trainer_config(sampler + "num_steps: 14");
  config.replace(config.find("n_data_processes: 0"), 19, "n_data_processes: 2");
  TestRun with_workers(config);
  with_workers.train();
  CHECK(differences(with_workers.checkpoint(14), whole) == "");
  for (const int64_t stop : {3, 6, 10}) {
    CAPTURE(stop);
    TestRun before(trainer_config(sampler + "num_steps: " + std::to_string(stop)));
    before.train();
    TestRun after(trainer_config(sampler + "num_steps: 14"), before, stop);
    after.train();
    CHECK(differences(after.checkpoint(14), whole) == "");
    CHECK(after.session.position().samples_seen == 29 + 29 + 10);
    CHECK(after.session.position().epoch == 2);
  }
}

TEST_CASE("a run that is resumed from the checkpoint before its first step is the same, too") {
  TestRun before(trainer_config("num_steps: 5\nckpt_zero: true"));
  before.train();
  TestRun after(trainer_config("num_steps: 5"), before, 0);
  after.train();
  CHECK(differences(after.checkpoint(5), trained("", 5)) == "");
}

TEST_CASE("how often one logs, evaluates and saves never changes the training") {
  // What is still to be logged is a part of the state that depends on it.
  const auto trained = [](const std::string& more, int64_t steps) {
    State state = training_loop_test::trained(more, steps);
    std::erase_if(state, [](const auto& item) { return item.first.starts_with("train_means."); });
    return state;
  };
  const State rarely = trained("log_freq: 1000\nstart_log_freq: 1000", 9);
  CHECK(differences(trained("log_freq: 1", 9), rarely) == "");
  CHECK(differences(trained("log_freq: {every: 3, at_start: true, at_end: true}", 9), rarely) ==
        "");
  CHECK(differences(trained("log_ops: [validation/sample_op, train/sample_op]", 9), rarely) == "");
  CHECK(differences(trained("eval_hook: {freq: {every: 1, at_start: true}}", 9), rarely) == "");
  CHECK(differences(trained("ckpt_freq: 1\nckpt_zero: true", 9), rarely) == "");
}

TEST_CASE("the number of loader workers changes nothing") {
  const State none = trained("", 9);
  std::string config = trainer_config("num_steps: 9");
  config.replace(config.find("n_data_processes: 0"), 19, "n_data_processes: 4");
  TestRun run(config);
  run.train();
  CHECK(differences(run.checkpoint(9), none) == "");
}

TEST_CASE("the preflight changes neither weights nor buffers nor random numbers") {
  TestRun run(trainer_config("num_steps: 5"));
  const auto snapshot = [&] {
    State state = run.session.context().tracker.save();
    for (auto& [name, tensor] : state) tensor = tensor.clone();
    return state;
  };
  const State before = snapshot();
  run.session.check();
  CHECK(differences(snapshot(), before) == "");
  CHECK(run.session.position().split == "train");
  run.train();
  CHECK(differences(run.checkpoint(5), trained("", 5)) == "");
}

TEST_CASE("accumulated batches train as one large batch, whatever the sizes of the last ones") {
  // Groups of 4 + 4 examples; the last of an epoch has 4, 4 + 2, or 1.
  for (const int64_t size : {20, 22, 17}) {
    CAPTURE(size);
    const auto weights = [size](const std::string& sizes) {
      TestRun run(R"(
iterator: Classifier
model: {class: MLP, inputs: 9, hidden: [5], classes: 3}
optimizer: {class: SGD, lr: 0.1, momentum: 0.9}
num_epochs: 2
datasets: {train: {class: Synthetic, shape: [1, 3, 3], classes: 3, size: )" +
                  std::to_string(size) + "}}\n" + sizes);
      run.train();
      CHECK(run.session.position().global_step == 6);
      CHECK(run.session.position().samples_seen == 2 * size);
      return run.checkpoint(6);
    };
    const State small = weights("batch_size: 4\naccumulate: 2");
    for (const auto& [name, tensor] : weights("batch_size: 8")) {
      if (!name.starts_with("model.")) continue;
      CAPTURE(name);
      CHECK((tensor - small.at(name)).abs().max().item<double>() < 1e-6);
    }
  }
}

TEST_CASE("what train ops return is averaged over the steps since the last log") {
  TestRun run(trainer_config("num_steps: 6\nlog_ops: [{op: train/log_op, when: 3}]"));
  run.train();
  std::vector<double> updates;
  for (const auto& line : run.metrics()) {
    if (line.contains("train/train_op/update")) updates.push_back(line["train/train_op/update"]);
  }
  CHECK(updates == (std::vector<double>{2, 5}));  // means of 1, 2, 3 and of 4, 5, 6
}

TEST_CASE("ops of any name are logged when their trigger says") {
  TestRun run(trainer_config(
      "num_steps: 8\nlog_ops: [{op: train/log_op, when: 1e}, {op: validation/sample_op, when: "
      "{every: 2, from: 3}}]"));
  run.train();
  std::vector<int> train, validation;
  for (const auto& line : run.metrics()) {
    if (line.contains("train/log_op/loss")) train.push_back(line["step"]);
    if (line.contains("validation/sample_op/loss")) validation.push_back(line["step"]);
  }
  CHECK(train == (std::vector<int>{4, 8}));
  CHECK(validation == (std::vector<int>{3, 5, 7}));
  CHECK(std::filesystem::exists(run.root() + "/train/validation/sample_op/noise_0000003.png"));
  CHECK(std::filesystem::exists(run.root() + "/train/train/log_op/noise_0000008.png"));
}

TEST_CASE("a line of the metrics tells step, epoch, samples and time") {
  TestRun run(trainer_config("num_steps: 6\nlog_freq: 2\nstart_log_freq: 2"));
  run.train();
  const auto lines = run.metrics();
  REQUIRE(lines.size() == 5);  // steps 2, 4 and its evaluation, 6 and its evaluation
  CHECK(lines[0]["step"] == 2);
  CHECK(lines[0]["epoch"] == 0.5);
  CHECK(lines[0]["samples"] == 16);
  CHECK(lines[0]["time"] >= 0);
  CHECK(lines[2].contains("validation/eval_op/loss"));
  CHECK(lines[4]["epoch"] == 1.5);
  CHECK(lines[4]["samples"] == 29 + 16);
}

TEST_CASE("a mean over a split counts each example once, whatever the last batch's size") {
  TestRun run(trainer_config("num_steps: 1"));
  run.train();
  CHECK(run.metrics().back()["validation/eval_op/index"] == 4.5);  // of 0 .. 9 in batches of 4
}

TEST_CASE("a signal ends the training after its step, with a checkpoint") {
  class Raise : public Hook {
   public:
    void after_step(int64_t step) override {
      if (step == 3) std::raise(SIGTERM);
    }
  };
  Raise hook;
  const SignalGuard guard;
  TestRun run(trainer_config("num_steps: 9"));
  const StopReason reason = run.train({&hook});
  CHECK(reason.kind == StopReason::Kind::kSignal);
  CHECK(reason.signal == SIGTERM);
  CHECK(run.checkpoints() == (std::vector<int64_t>{3}));
}

TEST_CASE("a signal in an evaluation leaves the evaluation to the next start") {
  class Raise : public Hook {
   public:
    void before_evaluation(int64_t) override { std::raise(SIGINT); }
  };
  Raise hook;
  TestRun before(trainer_config("num_epochs: 2"));
  {
    const SignalGuard guard;
    CHECK(before.train({&hook}).signal == SIGINT);
  }
  const std::string outputs = before.root() + "/eval/2026-11-21T10-00-00_test/4/outputs.h5";
  CHECK(before.checkpoints() == (std::vector<int64_t>{4}));
  CHECK_FALSE(std::filesystem::exists(outputs));
  TestRun after(trainer_config("num_epochs: 2"), before, 4);
  after.train();
  CHECK(std::filesystem::exists(outputs));
  CHECK(after.session.position().global_step == 8);
}

TEST_CASE("minutes that pass in an evaluation count for what is due at the next step") {
  class Sleep : public Hook {
   public:
    void before_evaluation(int64_t) override {
      std::this_thread::sleep_for(std::chrono::milliseconds(400));
    }
  };
  Sleep hook;
  TestRun run(
      trainer_config("num_steps: 8\nckpt_freq: 0.005m\neval_hook: {freq: 2}\n"
                     "log_ops: [{op: train/log_op, when: 0.005m}]"));  // 0.3 s
  run.train({&hook});
  const auto steps = run.checkpoints();
  std::vector<int64_t> logged;
  for (const auto& line : run.metrics()) {
    if (line.contains("train/log_op/loss")) logged.push_back(line["step"]);
  }
  for (const int64_t step : {3, 5, 7}) {
    CAPTURE(step);
    CHECK(std::count(steps.begin(), steps.end(), step) == 1);
    CHECK(std::count(logged.begin(), logged.end(), step) == 1);
  }
}

TEST_CASE("a run whose steps are all done says so and does nothing") {
  TestRun before(trainer_config("num_steps: 2"));
  before.train();
  TestRun after(trainer_config("num_steps: 2"), before, 2);
  const StopReason reason = after.train();
  CHECK(reason.kind == StopReason::Kind::kDone);
  CHECK(reason.text ==
        "all 2 steps were done before: set a larger num_epochs or num_steps to continue");
}

TEST_CASE("another batch size is taken between epochs and refused within one") {
  const auto resumed_with_batches_of_15 = [](const TestRun& before, int64_t step) {
    std::string config = trainer_config("num_steps: 6");
    config.replace(config.find("batch_size: 8"), 13, "batch_size: 15");
    return std::make_unique<TestRun>(config, before, step);
  };
  TestRun before(trainer_config("num_steps: 4"));
  before.train();
  const auto after = resumed_with_batches_of_15(before, 4);
  after->train();
  CHECK(after->session.position().epoch == 2);
  CHECK(after->session.position().samples_seen == 2 * 29);

  TestRun within(trainer_config("num_steps: 3"));
  within.train();
  const std::string message = message_of([&] { resumed_with_batches_of_15(within, 3); });
  CHECK(message.find("taken in the middle of an epoch of 4 batches, 3 of them done; an epoch now "
                     "has 2. Keep batch_size") != std::string::npos);
}

TEST_CASE("another batch size is refused within an epoch of as many batches, too") {
  const auto config_with = [](int batch_size, const std::string& more) {
    std::string config = trainer_config("max_batches_per_epoch: 2\n" + more);
    config.replace(config.find("batch_size: 8"), 13, fmt::format("batch_size: {}", batch_size));
    return config;
  };
  TestRun within(config_with(8, "num_steps: 1"));
  within.train();
  const auto resumed = [&](int batch_size, const std::string& more) {
    return message_of(
        [&] { TestRun(config_with(batch_size, "num_steps: 3\n" + more), within, 1); });
  };
  CHECK(resumed(8, "") == "no error");
  CHECK(resumed(8, "drop_last: true") == "no error");  // the same two batches
  CHECK(
      resumed(10, "") ==
      within.checkpoint_path(1) +
          ": taken in the middle of an epoch, in which a batch had 8 examples; it now has 10. Keep "
          "batch_size until the end of the epoch, or take a checkpoint from there with -c");
}

TEST_CASE("another order of the examples is taken between epochs and refused within one") {
  const auto resumed = [](const TestRun& before, int64_t step, const std::string& more) {
    return message_of([&] { TestRun(trainer_config("num_steps: 6\n" + more), before, step); });
  };
  TestRun between(trainer_config("num_steps: 4"));
  between.train();
  CHECK(resumed(between, 4, "seed: 2") == "no error");
  TestRun within(trainer_config("num_steps: 3"));
  within.train();
  CHECK(resumed(within, 3, "seed: 1") == "no error");
  CHECK(resumed(within, 3, "samplers: {train: {class: shuffle}}") == "no error");
  const std::string begin =
      within.checkpoint_path(3) +
      ": taken in the middle of an epoch, whose order of examples the config changes:\n  ";
  const std::string end =
      "\nKeep that until the end of the epoch, or take a checkpoint from there with -c";
  CHECK(resumed(within, 3, "seed: 2") == begin + "seed: 1 -> 2" + end);
  CHECK(resumed(within, 3, "samplers: {train: sequential}") ==
        begin + "samplers/train: shuffle -> sequential" + end);
}

TEST_CASE("within an epoch a shuffle is resumed only by the algorithm that it began with") {
  const std::string computed = "samplers: {train: {class: shuffle, order: computed}}";
  const std::string stored = "samplers: {train: {class: shuffle, order: stored}}";
  const auto message_after = [](const TestRun& before, const Checkpoint& checkpoint,
                                const std::string& more) {
    return message_of(
        [&] { TestRun(trainer_config("num_steps: 6\n" + more), before, checkpoint); });
  };
  const auto message_of_change = [](const TestRun& run, const std::string& before,
                                    const std::string& now) {
    return run.checkpoint_path(3) + ": taken in the middle of an epoch whose shuffled order was " +
           before + "; it is now " + now +
           ", and another one. To resume with the order that the epoch began with: "
           "--samplers/train '{class: shuffle, order: " +
           before + "}'; or take a checkpoint from the end of an epoch with -c";
  };
  TestRun usual(trainer_config("num_steps: 3"));
  usual.train();
  const Checkpoint of_usual = load_checkpoint(usual.checkpoint_path(3));
  CHECK(message_after(usual, of_usual, stored) == "no error");
  CHECK(message_after(usual, of_usual, computed) == message_of_change(usual, "stored", "computed"));
  TestRun other(trainer_config("num_steps: 3\n" + computed));
  other.train();
  const Checkpoint of_other = load_checkpoint(other.checkpoint_path(3));
  CHECK(message_after(other, of_other, computed) == "no error");
  CHECK(message_after(other, of_other, "") == message_of_change(other, "computed", "stored"));
  Checkpoint between = of_other;
  between.progress.batch = 0;
  CHECK(message_after(other, between, "") == "no error");
}

TEST_CASE("num_epochs counts epochs, also when a resume gives them another number of steps") {
  const auto end_of = [](const TestRun& before, int64_t step, const std::string& more) {
    std::string config = trainer_config(more);
    if (more.find("accumulate") == std::string::npos) {
      config.replace(config.find("batch_size: 8"), 13, "batch_size: 15");
    }
    TestRun after(config, before, step);
    after.train();
    const Position& end = after.session.position();
    CHECK(end.batch == 0);
    return std::pair(end.global_step, end.epoch);
  };
  using End = std::pair<int64_t, int64_t>;
  TestRun epoch(trainer_config("num_epochs: 1"));
  epoch.train();
  CHECK(end_of(epoch, 4, "num_epochs: 3") == End{8, 3});
  CHECK(end_of(epoch, 4, "num_epochs: 2\naccumulate: 2") == End{6, 2});
  CHECK(end_of(epoch, 4, "num_epochs: 9\nnum_steps: 6") == End{6, 2});
  TestRun within(trainer_config("num_steps: 3"));
  within.train();
  CHECK(end_of(within, 3, "num_epochs: 2\naccumulate: 2") == End{6, 2});
}

TEST_CASE("max_batches_per_epoch and drop_last cut an epoch") {
  TestRun cut(trainer_config("num_epochs: 2\nmax_batches_per_epoch: 3"));
  cut.train();
  CHECK(cut.session.position().global_step == 6);
  CHECK(cut.session.position().samples_seen == 48);
  TestRun dropped(trainer_config("num_epochs: 2\ndrop_last: true"));
  dropped.train();
  CHECK(dropped.session.position().samples_seen == 48);
}

TEST_CASE("fixed examples are the same at every step and in every run, or those of the config") {
  const auto indices = [](const std::string& more) {
    TestRun run(trainer_config("num_steps: 1\n" + more));
    return run.session.context().splits.fixed_examples("validation").indices();
  };
  CHECK(indices("").size() == 8);
  CHECK(indices("") == indices("seed: 7"));
  CHECK(indices("fixed_example_indices: {validation: [3, 1]}") == (std::vector<int64_t>{3, 1}));
  CHECK(message_of([&] { indices("fixed_example_indices: {validation: [3, 10]}"); }) ==
        "test.yaml:13: fixed_example_indices/validation/1: no example 10: the dataset has 10");
}

}  // namespace training_loop_test
}  // namespace stepop
