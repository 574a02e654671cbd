#include "runtime/train/when/settings.h"

#include <doctest/doctest.h>

#include "runtime/core/value/yaml_reader.h"
#include "tests/message_of.h"

namespace stepop {
namespace settings_test {

/// Epochs of ten batches.
Settings settings_of(const std::string& more, bool train = true, bool debug = false) {
  const Config config(
      parse_yaml("datasets: {train: A, validation: B, test: C}\nbatch_size: 4\n" + more + "\n",
                 {"test.yaml", 0}));
  return {config, 10, train, debug};
}

std::string refused(const std::string& more) {
  return message_of([&] { settings_of(more); });
}

std::vector<int64_t> due_steps(const Trigger& trigger, int64_t last) {
  std::vector<int64_t> steps;
  for (int64_t step = 1; step <= last; ++step) {
    if (trigger.is_due({step - 1, 0}, {step, 0})) steps.push_back(step);
  }
  return steps;
}

TEST_CASE("the end of a training in epochs, in steps, and in both") {
  CHECK(settings_of("num_epochs: 3").num_steps == 30);
  CHECK(settings_of("num_epochs: 0.5").num_steps == 5);
  CHECK(settings_of("num_epochs: 3\nnum_steps: 12").num_steps == 12);  // num_steps wins, as edflow
  CHECK(settings_of("num_epochs: 3\nnum_steps: 12").num_epochs == 2);
  CHECK(settings_of("num_steps: 99").num_epochs == 10);
  CHECK(settings_of("num_epochs: 2\naccumulate: 4").steps_per_epoch == 3);  // 4 + 4 + 2 batches
  CHECK(settings_of("num_epochs: 2\naccumulate: 4").num_steps == 6);
}

TEST_CASE("times in examples are as many steps as train them, whatever batches a step has") {
  const auto logged = [](const std::string& more, int64_t processes) {
    const Config config(parse_yaml(
        "datasets: {train: A}\nnum_steps: 40\nlog_freq: 100 examples\n" + more, {"test.yaml", 0}));
    return due_steps(Settings(config, 10, true, false, {}, processes).log_ops.at(0).when, 40);
  };
  CHECK(logged("batch_size: 10", 1) == std::vector<int64_t>{10, 20, 30, 40});
  CHECK(logged("batch_size: 10\naccumulate: 2", 1) ==
        std::vector<int64_t>{5, 10, 15, 20, 25, 30, 35, 40});
  CHECK(logged("batch_size: 9", 1) == std::vector<int64_t>{12, 24, 36});  // 11.1, rounded up
  CHECK(logged("batch_size: 10", 2) == std::vector<int64_t>{10, 20, 30, 40});
  CHECK(logged("batch_size: {per_process: 10}", 2).front() == 5);
}

TEST_CASE("a training that never ends is refused, an evaluation needs no end") {
  CHECK(refused("") ==
        "test.yaml:1: num_epochs: missing: give num_epochs or num_steps, which says when the "
        "training "
        "ends");
  CHECK(refused("num_epochs: 0") == "test.yaml:3: num_epochs: expected more than 0, found 0");
  CHECK(refused("num_epochs: 0.01") ==
        "test.yaml:3: num_epochs: 0.01 of an epoch of 10 steps is less than one step");
  CHECK(refused("num_epochs: .inf") ==
        "test.yaml:3: num_epochs: expected a number that can be reached, found .inf");
  CHECK(refused("num_steps: 0") == "test.yaml:3: num_steps: expected 1 or more, found 0");
  CHECK(message_of([] { settings_of("", /*train=*/false); }) == "no error");
  CHECK(message_of([] { settings_of("num_epochs: 0.01", /*train=*/false); }) == "no error");
}

TEST_CASE("the defaults are edflow's") {
  const Settings settings = settings_of("num_epochs: 100");
  REQUIRE(settings.train_ops.size() == 1);
  CHECK(settings.train_ops[0].name.text() == "train/train_op");
  REQUIRE(settings.log_ops.size() == 2);
  CHECK(settings.log_ops[0].name.text() == "train/log_op");
  CHECK(settings.log_ops[1].name.text() == "validation/log_op");
  CHECK(due_steps(settings.log_ops[0].when, 100) == std::vector<int64_t>({1, 3, 7, 15, 31, 63}));
  CHECK_FALSE(settings.checkpoint.is_ever_due());
  CHECK_FALSE(settings.checkpoint_zero);
  REQUIRE(settings.evaluations.size() == 1);
  CHECK(settings.evaluations.at(0).compression == EvalCompression::kNone);
  CHECK(settings.evaluations.at(0).op.text() == "validation/eval_op");
  CHECK(due_steps(settings.evaluations.at(0).when, 25) == std::vector<int64_t>({10, 20}));
  CHECK(settings.evaluations.at(0).max_batches == 0);
}

TEST_CASE("log_freq and start_log_freq") {
  const auto steps = [](const std::string& more) {
    return due_steps(settings_of("num_epochs: 100\n" + more).log_ops[0].when, 50);
  };
  CHECK(steps("log_freq: 20") == std::vector<int64_t>({1, 3, 7, 15, 31}));
  CHECK(steps("log_freq: 20\nstart_log_freq: 20") == std::vector<int64_t>({20, 40}));
  CHECK(steps("log_freq: 20\nstart_log_freq: 5") == std::vector<int64_t>({5, 15, 35}));
  CHECK(steps("log_freq: 2\nstart_log_freq: 5").front() == 2);
  CHECK(steps("log_freq: 2e") == std::vector<int64_t>({20, 40}));
  CHECK(refused("num_steps: 1\nlog_freq: 0") ==
        "test.yaml:4: log_freq: expected 1 or more, found 0");
}

TEST_CASE("ops by name, each with its own trigger") {
  const Settings settings = settings_of(R"(
num_epochs: 9
train_ops: [train/train_op/generator, train/train_op/discriminator]
log_ops: [test/log_op, {op: validation/sample_op, when: 7}]
eval_hook: {eval_op: test/eval_op, freq: 2e, clean_after_callbacks: true, compression: gzip}
ckpt_freq: 25
ckpt_zero: true)");
  REQUIRE(settings.train_ops.size() == 2);
  CHECK(settings.train_ops[1].name.op == "train_op/discriminator");
  CHECK(settings.log_ops[0].name.split == "test");
  CHECK(due_steps(settings.log_ops[1].when, 20) == std::vector<int64_t>({7, 14}));
  CHECK(settings.evaluations.at(0).op.split == "test");
  CHECK(due_steps(settings.evaluations.at(0).when, 50) == std::vector<int64_t>({20, 40}));
  CHECK(settings.evaluations.at(0).clean_after_callbacks);
  CHECK(settings.evaluations.at(0).compression == EvalCompression::kGzip);
  CHECK(due_steps(settings.checkpoint, 60) == std::vector<int64_t>({25, 50}));
  CHECK(settings.checkpoint_zero);
}

TEST_CASE("a train op is due at each step, or as its trigger says") {
  const Settings settings = settings_of(R"(
num_epochs: 9
train_ops:
  - train/train_op/critic
  - {op: train/train_op/generator, when: {every: 5, from: 20, at_start: true}}
  - {op: train/train_op/decoder, when: 2e})");
  const auto steps = [&](size_t op) {
    std::vector<int64_t> due;
    for (int64_t step = 0; step < 40; ++step) {
      if (settings.train_ops[op].is_due_in_step_after(step)) due.push_back(step + 1);
    }
    return due;
  };
  CHECK(steps(0).size() == 40);
  CHECK(steps(1) == std::vector<int64_t>({1, 20, 25, 30, 35, 40}));
  CHECK(steps(2) == std::vector<int64_t>({20, 40}));
  CHECK(settings.steps_until_all_trained(0) == 20);
  CHECK(settings.steps_until_all_trained(20) == 20);
  CHECK(settings.steps_until_all_trained(25) == 15);
  CHECK(settings_of("num_epochs: 9").steps_until_all_trained(3) == 1);
  const std::string one = "num_steps: 1\ntrain_ops: [{op: train/train_op, when: ";
  CHECK(refused(one + "10m}]") ==
        "test.yaml:4: train_ops/0/when: expected steps (100) or epochs (2e), found minutes: what a "
        "training does may not depend on the clock");
  CHECK(refused(one + "{every: 2, at_end: true}}]") ==
        "test.yaml:4: train_ops/0/when: at_end is for log ops: what a training does may not depend "
        "on where it ends, since it may be continued");
  CHECK(refused("num_steps: 1\ntrain_ops: [3]") ==
        "test.yaml:4: train_ops/0: expected an op, such as train/train_op, or a map {op: "
        "train/train_op/generator, when: 5}, found 3");
}

TEST_CASE("eval_hook: null turns the evaluations of a training off, and those alone") {
  CHECK(settings_of("num_steps: 1\neval_hook: null").evaluations.empty());
  CHECK(settings_of("num_steps: 1\neval_hook: {}").evaluations.size() == 1);
  CHECK(settings_of("eval_hook: null", /*train=*/false).evaluations.size() == 1);
}

TEST_CASE("a run in debug mode is short") {
  CHECK(settings_of("num_epochs: 9", true, true).num_steps == 10);
  CHECK(settings_of("num_steps: 3", true, true).num_steps == 3);
  CHECK(settings_of("num_epochs: 9", true, true).evaluations.at(0).max_batches == 5);
  const std::string limits = "num_epochs: 9\ndebug: {max_steps: 4, max_examples: 9}";
  CHECK(settings_of(limits, true, true).num_steps == 4);
  CHECK(settings_of(limits, true, true).evaluations.at(0).max_batches == 3);
  CHECK(settings_of(limits, true, false).num_steps == 90);
}

TEST_CASE("a config without a validation split trains without one") {
  const Config config(
      parse_yaml("datasets: {train: A}\nbatch_size: 4\nnum_steps: 1\n", {"test.yaml", 0}));
  const Settings settings(config, 10, true, false);
  CHECK(settings.evaluations.empty());
  CHECK(settings.log_ops.size() == 1);
}

TEST_CASE("numbers beyond any training are refused") {
  for (const char* key : {"accumulate", "num_steps"}) {
    CHECK(message_of([&] {
            settings_of(std::string("num_epochs: 1\n") + key + ": 9223372036854775807");
          }).find("expected 1000000000000000000 or less, found 9223372036854775807") !=
          std::string::npos);
  }
}

TEST_CASE("ops that cannot be are told with their place") {
  const std::string one = "num_steps: 1\n";
  CHECK(refused(one + "log_ops: [log_op]") ==
        "test.yaml:4: log_ops/0: expected a split and an op, such as validation/log_op, found "
        "\"log_op\"");
  CHECK(refused(one + "log_ops: [tset/log_op]") ==
        "test.yaml:4: log_ops/0: \"tset/log_op\" needs datasets/tset, which the config does not "
        "give");
  CHECK(refused(one + "log_ops: train/log_op") ==
        "test.yaml:4: log_ops: expected a list of ops, such as [train/log_op], found "
        "\"train/log_op\"");
  CHECK(refused(one + "log_ops: [3]") ==
        "test.yaml:4: log_ops/0: expected an op, such as validation/log_op, or a map {op: "
        "validation/sample_op, when: 500}, found 3");
  CHECK(refused(one + "log_ops: [{op: train/log_op}]") ==
        "test.yaml:4: log_ops/0/when: missing; give it in a config, or on the command line as "
        "--log_ops/0/when VALUE");
  CHECK(refused(one + "train_ops: [validation/train_op]") ==
        "test.yaml:4: train_ops/0: a train op belongs to the split train: train/train_op");
  CHECK(refused(one + "eval_hook: {eval_op: eval_op}") ==
        "test.yaml:4: eval_hook/eval_op: expected a split and an op, such as validation/eval_op, "
        "found \"eval_op\"");
  CHECK(refused(one + "eval_hook: {compression: zip}") ==
        "test.yaml:4: eval_hook/compression: expected none or gzip, found \"zip\"");
  CHECK(refused(one + "accumulate: 0") == "test.yaml:4: accumulate: expected 1 or more, found 0");
  CHECK(refused(one + "train_ops: [train/train_op, train/train_op]") ==
        "test.yaml:4: train_ops/1: \"train/train_op\" is there twice");
}

}  // namespace settings_test
}  // namespace stepop
