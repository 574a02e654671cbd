// What fails in the midst of a training or an evaluation is told with the step and the examples.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>

#include "runtime/train/iterator/iterator.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/optim/update.h"
#include "tests/message_of.h"
#include "tests/test_run.h"

namespace stepop {
namespace examples_of_error_test {

struct Thrown {};

/// Fails in an op on the example that `bad` names.
class TestPicky : public Iterator {
 public:
  explicit TestPicky(const Context& context)
      : Iterator(context),
        model_(context.network<Network>()),
        update_(context.update()),
        where_(config().get("where", "")),
        thrown_(config().get("thrown", "")),
        bad_(config().get("bad", int64_t{0})) {}

  StepOps step_op(const Batch& batch) override {
    fail_in("step_op", batch);
    const at::Tensor loss = model_->forward(batch["image"]).square().mean();
    return {.train_op =
                [=, this] {
                  fail_in("train_op", batch);
                  update_.step(loss);
                },
            .log_op =
                [=, this] {
                  fail_in("log_op", batch);
                  return Logs{};
                },
            .eval_op =
                [=, this] {
                  fail_in("eval_op", batch);
                  return EvalOutputs{.outputs = {{"image", batch["image"]}}};
                }};
  }

 private:
  void fail_in(const std::string& op, const Batch& batch) const {
    const auto& indices = batch.indices();
    const bool is_there = std::find(indices.begin(), indices.end(), bad_) != indices.end();
    if (get_split() + "/" + op != where_ || !is_there) return;
    if (thrown_ == "text") throw "a text";  // NOLINT: users do
    if (thrown_ == "string") throw std::string("a string");
    if (thrown_ == "number") throw 42;
    if (thrown_ == "struct") throw Thrown{};
    if (thrown_ == "memory") at::empty({int64_t{1} << 50});
    throw std::runtime_error("a torn page");
  }

  std::shared_ptr<Network> model_;
  Update& update_;
  std::string where_;
  std::string thrown_;
  int64_t bad_;
};
STEPOP_REGISTER_ITERATOR(TestPicky, {"For tests.", {}});

std::string message(const std::string& where, int64_t bad, const std::string& thrown = "error") {
  TestRun run("iterator: TestPicky\nwhere: " + where + "\nbad: " + std::to_string(bad) +
              "\nthrown: " + thrown + R"(
model: {class: MLP, inputs: 4, hidden: [], classes: 2}
datasets:
  train: {class: Synthetic, size: 24, shape: [1, 2, 2], classes: 2}
  validation: {class: Synthetic, size: 24, shape: [1, 2, 2], classes: 2}
samplers: {train: sequential, validation: sequential}
batch_size: 12
test_batch_size: 4
num_epochs: 2
log_freq: 1
optimizer: SGD
n_data_processes: 0
)");
  return message_of([&] { run.train(); });
}

const std::string kSecondBatch = "12, 13, 14, 15, 16, 17, 18, 19, 20, 21 and 2 more";

TEST_CASE("an error in an op of a training says the step and the examples") {
  for (const char* where : {"train/step_op", "train/train_op"}) {
    CHECK(message(where, 13) == where + (": a torn page\nafter step 1, with the examples " +
                                         kSecondBatch + " of datasets/train"));
  }
  CHECK(message("train/train_op", 0) ==
        "train/train_op: a torn page\nin the first step, with the examples 0, 1, 2, 3, 4, 5, 6, 7, "
        "8, 9 and 2 more of datasets/train");
  CHECK(message("validation/log_op", 13) ==
        "validation/log_op: a torn page\nafter step 2, with the examples " + kSecondBatch +
            " of datasets/validation\nthe state after step 2 was saved");
}

TEST_CASE("an error in an evaluation says the step and the examples") {
  CHECK(message("validation/eval_op", 9) ==
        "validation/eval_op: a torn page\nafter step 2, with the examples 8, 9, 10, 11 of "
        "datasets/validation");
}

TEST_CASE("what is thrown and is no exception is an error with place, step and examples, too") {
  const std::string end =
      "\nafter step 1, with the examples " + kSecondBatch + " of datasets/train";
  for (const char* where : {"train/step_op", "train/train_op"}) {
    CAPTURE(where);
    CHECK(message(where, 13, "text") == where + (": a text" + end));
    CHECK(message(where, 13, "string") == where + (": a string" + end));
    CHECK(message(where, 13, "number") == where + (": threw the number 42" + end));
    CHECK(message(where, 13, "struct") ==
          where +
              (": threw a stepop::examples_of_error_test::Thrown, which is not a std::exception" +
               end));
  }
  CHECK(message("validation/log_op", 13, "number")
            .starts_with("validation/log_op: threw the number 42\nafter step 2"));
  CHECK(message("validation/eval_op", 9, "number")
            .starts_with("validation/eval_op: threw the number 42\nafter step 2"));
}

TEST_CASE("what a hook or a constructor throws and is no exception is an error with its name") {
  class Throw : public Hook {
   public:
    void after_step(int64_t) override { throw 7; }
  };
  Throw hook;
  TestRun run(R"(
iterator: TestPicky
model: {class: MLP, inputs: 4, hidden: [], classes: 2}
datasets: {train: {class: Synthetic, size: 24, shape: [1, 2, 2], classes: 2}}
batch_size: 12
num_steps: 1
optimizer: SGD
)");
  CHECK(message_of([&] { run.train({&hook}); }) == "after_step: threw the number 7");
}

TEST_CASE("an op that gets no memory says who has it, and what would help") {
  const std::string text = message("train/train_op", 13, "memory");
  CHECK(text.starts_with("train/train_op: "));
  for (const char* part : {"after step 1, with the examples ",
                           "\nno memory is left: networks have 40 B, gradients 0 B, "
                           "the batch of 12 examples 384 B; this process ",
                           "\nlargest tensors: batch image float32 [12, 1, 2, 2], 192 B; ",
                           "model.layers.0.weight float32 [2, 4], 32 B",
                           "\nwhat would help: --on_out_of_memory split, which halves batches by "
                           "itself; --batch_size 6 "
                           "--accumulate 2, which trains the same; ",
                           "--precision bfloat16; `stepop tune"}) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  }
  CHECK(message("validation/eval_op", 13, "memory")
            .find("what would help: a smaller test_batch_size") != std::string::npos);
  CHECK(message("train/train_op", 13).find("memory") == std::string::npos);
}

}  // namespace examples_of_error_test
}  // namespace stepop
