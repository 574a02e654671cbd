#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "eval_out/callbacks/callback.h"
#include "runtime/core/system/file_calls.h"
#include "tests/message_of.h"
#include "tests/test_run.h"

namespace stepop {
namespace order_test {

using Events = std::vector<std::string>;

/// What happened, in its order.
Events& events() {
  static Events list;
  return list;
}

void add(const std::string& event) { events().push_back(event); }

class OrderDataset : public Dataset {
 public:
  explicit OrderDataset(const Config& params)
      : name_(params.get<std::string>("name")), size_(params.get<int64_t>("size")) {}
  int64_t size() const override { return size_; }
  Example get(int64_t, Random&) const override { return {}; }
  std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                 std::span<Random>) const override {
    add(fmt::format("{} examples {}", name_, fmt::join(indices, " ")));
    return Batch({{"x", at::zeros({static_cast<int64_t>(indices.size())})}}, {}, {});
  }

 private:
  std::string name_;
  int64_t size_;
};

class OrderIterator : public Iterator {
 public:
  explicit OrderIterator(const Context& context)
      : Iterator(context), fails_at_(config().get<int64_t>("fails_at", -1)) {}

  StepOps step_op(const Batch& batch) override {
    const std::string split = get_split();
    add(split + " step_op");
    const int64_t size = batch.size();
    return {.train_op =
                [=, this] {
                  add(fmt::format("{} train_op", get_split()));
                  if (global_step() == fails_at_) throw Error("the op failed");
                },
            .log_op =
                [=, this] {
                  add(fmt::format("{} log_op at {}", get_split(), global_step()));
                  return Logs{.scalars = {{"number", 1}}};
                },
            .eval_op =
                [=, this] {
                  add(fmt::format("{} eval_op", get_split()));
                  return EvalOutputs{.labels = {{"loss", at::zeros({size})}}};
                }};
  }

 private:
  int64_t fails_at_;
};

Logs order_callback(const CallbackArguments&) {
  add("callback");
  return {};
}

STEPOP_REGISTER_DATASET(OrderDataset, {"For tests.", {{"name", "", ""}, {"size", "", ""}}});
STEPOP_REGISTER_ITERATOR(OrderIterator, {"For tests.", {}});
STEPOP_REGISTER_CALLBACK(test_order, order_callback, {"For tests.", {}});

class OrderHook : public Hook {
 public:
  void before_training() override { add("before_training"); }
  void after_training() override { add("after_training"); }
  void before_batch(const Batch& batch) override {
    add(fmt::format("before_batch {}", fmt::join(batch.indices(), " ")));
  }
  void after_batch(const Batch&, const OrderedMap<Scalars>& results) override {
    add("after_batch " + results.key_list());
  }
  void after_log(int64_t step, const OrderedMap<double>& scalars) override {
    OrderedMap<double> of_ops = scalars;  // without what the runtime tells of itself
    of_ops.erase_if([](const auto& entry) { return entry.first.starts_with("runtime/"); });
    add(fmt::format("after_log {}: {}", step, of_ops.key_list()));
  }
  void before_epoch(int64_t epoch) override { add(fmt::format("before_epoch {}", epoch)); }
  void before_step(int64_t step) override { add(fmt::format("before_step {}", step)); }
  void after_step(int64_t step) override { add(fmt::format("after_step {}", step)); }
  void after_epoch(int64_t epoch) override { add(fmt::format("after_epoch {}", epoch)); }
  void after_checkpoint(const std::string& path) override {
    add("after_checkpoint " + std::filesystem::path(path).stem().string());
  }
  void before_evaluation(int64_t step) override { add(fmt::format("before_evaluation {}", step)); }
  void after_evaluation(int64_t step) override { add(fmt::format("after_evaluation {}", step)); }
  void at_exception(const std::exception& error) override {
    add(std::string("at_exception ") + error.what());
  }
};

/// Epochs of three batches; the validation log is due at every second step, a checkpoint at every
/// second one, too.
constexpr const char* kConfig = R"(
iterator: OrderIterator
datasets:
  train: {class: OrderDataset, name: train, size: 5}
  validation: {class: OrderDataset, name: validation, size: 3}
samplers: {train: sequential, validation: sequential}
batch_size: 2
n_data_processes: 0
num_epochs: 2
log_freq: 1
log_ops: [train/log_op, {op: validation/log_op, when: 2}]
ckpt_freq: 2
eval_hook: {eval_callbacks: {order: test_order}}
)";

Events events_of(TestRun& run) {
  OrderHook hook;
  events().clear();
  run.train({&hook});
  return events();
}

/// What happens to a run until its end, from step 4 of 6 on.
const Events kFromStepFour = {
    "before_step 4",
    "train examples 2 3",
    "before_batch 2 3",
    "train step_op",
    "train train_op",
    "after_batch train_op",
    "train log_op at 5",
    "after_log 5: train/log_op/number",
    "after_step 5",
    "before_step 5",
    "train examples 4",
    "before_batch 4",
    "train step_op",
    "train train_op",
    "after_batch train_op",
    "train log_op at 6",
    "validation examples 0 1",
    "validation step_op",
    "validation log_op at 6",
    "after_log 6: train/log_op/number, validation/log_op/number",
    "after_step 6",
    "after_epoch 1",
    "after_checkpoint model-6",
    "before_evaluation 6",
    "validation examples 0 1",
    "validation step_op",
    "validation eval_op",
    "validation examples 2",
    "validation step_op",
    "validation eval_op",
    "callback",
    "after_log 6: validation/eval_op/loss",
    "after_evaluation 6",
    "after_training",
};

TEST_CASE("the order of a fresh run of two epochs") {
  Events expected = {
      "before_training",
      "before_epoch 0",
      "before_step 0",
      "train examples 0 1",
      "before_batch 0 1",
      "train step_op",
      "train train_op",
      "after_batch train_op",
      "train log_op at 1",
      "after_log 1: train/log_op/number",
      "after_step 1",
      "before_step 1",
      "train examples 2 3",
      "before_batch 2 3",
      "train step_op",
      "train train_op",
      "after_batch train_op",
      "train log_op at 2",
      "validation examples 0 1",
      "validation step_op",
      "validation log_op at 2",
      "after_log 2: train/log_op/number, validation/log_op/number",
      "after_step 2",
      "after_checkpoint model-2",
      "before_step 2",
      "train examples 4",
      "before_batch 4",
      "train step_op",
      "train train_op",
      "after_batch train_op",
      "train log_op at 3",
      "after_log 3: train/log_op/number",
      "after_step 3",
      "after_epoch 0",
      "after_checkpoint model-3",
      "before_evaluation 3",
      "validation examples 0 1",
      "validation step_op",
      "validation eval_op",
      "validation examples 2",
      "validation step_op",
      "validation eval_op",
      "callback",
      "after_log 3: validation/eval_op/loss",
      "after_evaluation 3",
      "before_epoch 1",
      "before_step 3",
      "train examples 0 1",
      "before_batch 0 1",
      "train step_op",
      "train train_op",
      "after_batch train_op",
      "train log_op at 4",
      "validation examples 2",
      "validation step_op",
      "validation log_op at 4",
      "after_log 4: train/log_op/number, validation/log_op/number",
      "after_step 4",
      "after_checkpoint model-4",
  };
  expected.insert(expected.end(), kFromStepFour.begin(), kFromStepFour.end());
  TestRun run(kConfig);
  CHECK(events_of(run) == expected);
  CHECK(run.session.position().epoch == 2);
  CHECK(run.session.position().batch == 0);
  CHECK(run.session.position().samples_seen == 10);
}

TEST_CASE("a run that is resumed in the middle of an epoch goes on where it was") {
  TestRun before(kConfig);
  events_of(before);
  TestRun run(kConfig, before, 4);
  CHECK(run.session.position().batch == 1);
  // What a hook did after the checkpoint is not in it.
  Events expected = {"before_training", "after_checkpoint model-4"};
  expected.insert(expected.end(), kFromStepFour.begin(), kFromStepFour.end());
  CHECK(events_of(run) == expected);
}

TEST_CASE("a run that died in an evaluation goes on in that evaluation, in the same folder") {
  TestRun before(kConfig);
  events_of(before);
  const std::string folder = before.root() + "/eval/2026-11-21T10-00-00_test/3/";
  const std::string outputs = folder + "outputs.h5";
  REQUIRE(std::filesystem::remove(outputs));
  REQUIRE(std::filesystem::remove(folder + "scalars.json"));  // the last thing that it writes
  TestRun run(kConfig, before, 3);
  const Events happened = events_of(run);
  REQUIRE(happened.size() > 12);
  CHECK(Events(happened.begin(), happened.begin() + 12) ==
        Events{"before_training", "after_checkpoint model-3", "before_evaluation 3",
               "validation examples 0 1", "validation step_op", "validation eval_op",
               "validation examples 2", "validation step_op", "validation eval_op", "callback",
               "after_log 3: validation/eval_op/loss", "after_evaluation 3"});
  CHECK(happened[12] == "before_epoch 1");
  CHECK(std::filesystem::exists(outputs));
}

TEST_CASE("outputs that the config removes are not made again at a resume") {
  const std::string cleaned = [&] {
    std::string text = kConfig;
    text.replace(text.find("{eval_callbacks"), 1, "{clean_after_callbacks: true, ");
    return text;
  }();
  TestRun before(cleaned);
  events_of(before);
  CHECK_FALSE(
      std::filesystem::exists(before.root() + "/eval/2026-11-21T10-00-00_test/3/outputs.h5"));
  TestRun run(cleaned, before, 3);
  const Events happened = events_of(run);
  REQUIRE(happened.size() > 6);
  CHECK(Events(happened.begin(), happened.begin() + 6) ==
        Events{"before_training", "after_checkpoint model-3", "before_evaluation 3",
               "after_log 3: validation/eval_op/loss", "after_evaluation 3", "before_epoch 1"});
}

/// Ends the training, as a kill would, around the rename that gives scalars.json its name.
class EndedAtScalars : public FileCalls {
 public:
  explicit EndedAtScalars(bool is_after) : is_after_(is_after) {}

  int rename(const char* from, const char* to) override {
    if (!std::string(to).ends_with("/scalars.json")) return FileCalls::rename(from, to);
    if (is_after_) FileCalls::rename(from, to);
    throw Error("killed");
  }

 private:
  bool is_after_;
  FileCallsOverride override_{*this};
};

TEST_CASE("outputs that the config removes do not stay where a kill came before their removal") {
  std::string cleaned = kConfig;
  cleaned.replace(cleaned.find("{eval_callbacks"), 1, "{clean_after_callbacks: true, ");
  for (const bool is_after : {true, false}) {
    CAPTURE(is_after);
    TestRun before(cleaned);
    {
      const EndedAtScalars ended(is_after);
      CHECK(message_of([&] { events_of(before); }) == "killed");
    }
    const std::string folder = before.root() + "/eval/2026-11-21T10-00-00_test/3/";
    CHECK(std::filesystem::exists(folder + "scalars.json") == is_after);
    TestRun run(cleaned, before, 3);
    const Events happened = events_of(run);
    // Where the numbers were not there yet, the rows were, and the callbacks run again.
    CHECK(happened.at(3) == (is_after ? "after_log 3: validation/eval_op/loss" : "callback"));
    CHECK(std::filesystem::exists(folder + "scalars.json"));
    for (const char* left : {"outputs.h5", "outputs.h5.part"}) {
      CAPTURE(left);
      CHECK_FALSE(std::filesystem::exists(folder + left));
    }
  }
}

TEST_CASE("a run that ends in the middle of an epoch saves and evaluates what it ends with") {
  TestRun run(std::string(kConfig) + "num_steps: 1\n");
  CHECK(events_of(run) == Events{
                              "before_training",
                              "before_epoch 0",
                              "before_step 0",
                              "train examples 0 1",
                              "before_batch 0 1",
                              "train step_op",
                              "train train_op",
                              "after_batch train_op",
                              "train log_op at 1",
                              "after_log 1: train/log_op/number",
                              "after_step 1",
                              "after_checkpoint model-1",
                              "before_evaluation 1",
                              "validation examples 0 1",
                              "validation step_op",
                              "validation eval_op",
                              "validation examples 2",
                              "validation step_op",
                              "validation eval_op",
                              "callback",
                              "after_log 1: validation/eval_op/loss",
                              "after_evaluation 1",
                              "after_training",
                          });
}

const std::string kFailure =
    "train/train_op: the op failed\nafter step 1, with the examples 2, 3 of datasets/train";

TEST_CASE("an exception in a train op goes through every hook and on") {
  TestRun run(std::string(kConfig) + "fails_at: 1\n");
  OrderHook hook;
  events().clear();
  CHECK(message_of([&] { run.train({&hook}); }) == kFailure);
  CHECK(events() == Events{
                        "before_training",
                        "before_epoch 0",
                        "before_step 0",
                        "train examples 0 1",
                        "before_batch 0 1",
                        "train step_op",
                        "train train_op",
                        "after_batch train_op",
                        "train log_op at 1",
                        "after_log 1: train/log_op/number",
                        "after_step 1",
                        "before_step 1",
                        "train examples 2 3",
                        "before_batch 2 3",
                        "train step_op",
                        "train train_op",
                        "at_exception " + kFailure,
                    });
  CHECK(run.checkpoints().empty());
}

TEST_CASE("logs, a checkpoint and an evaluation before the first step change nothing of it") {
  TestRun run(R"(
iterator: OrderIterator
datasets:
  train: {class: OrderDataset, name: train, size: 4}
  validation: {class: OrderDataset, name: validation, size: 2}
samplers: {train: sequential, validation: sequential}
batch_size: 2
n_data_processes: 0
num_steps: 1
log_freq: {every: 10, at_start: true}
ckpt_zero: true
eval_hook: {freq: {every: 10, at_start: true}, eval_callbacks: {order: test_order}}
)");
  CHECK(events_of(run) == Events{
                              "before_training",
                              "train examples 0 1",
                              "train step_op",
                              "train log_op at 0",
                              "validation examples 0 1",
                              "validation step_op",
                              "validation log_op at 0",
                              "after_log 0: train/log_op/number, validation/log_op/number",
                              "after_checkpoint model-0",
                              "before_evaluation 0",
                              "validation examples 0 1",
                              "validation step_op",
                              "validation eval_op",
                              "callback",
                              "after_log 0: validation/eval_op/loss",
                              "after_evaluation 0",
                              "before_epoch 0",
                              "before_step 0",
                              "train examples 0 1",
                              "before_batch 0 1",
                              "train step_op",
                              "train train_op",
                              "after_batch train_op",
                              "after_step 1",
                              "after_checkpoint model-1",
                              "before_evaluation 1",
                              "validation examples 0 1",
                              "validation step_op",
                              "validation eval_op",
                              "callback",
                              "after_log 1: validation/eval_op/loss",
                              "after_evaluation 1",
                              "after_training",
                          });
}

}  // namespace order_test
}  // namespace stepop
