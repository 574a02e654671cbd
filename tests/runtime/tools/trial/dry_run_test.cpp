#include "runtime/tools/trial/dry_run.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <map>

#include "runtime/train/optim/update.h"
#include "tests/message_of.h"
#include "tests/test_run.h"

namespace stepop {
namespace dry_run_test {

/// How often each op ran, and on how many examples last.
struct Calls {
  std::map<std::string, int> count;
  std::map<std::string, int64_t> examples;
};

Calls& calls() {
  static Calls all;
  return all;
}

/// Trains one number; `fault` names a mistake that a single batch does not show.
class TestTrial : public Iterator {
 public:
  explicit TestTrial(const Context& context)
      : Iterator(context),
        fault_(config().get("fault", "none")),
        weight_(at::ones({1}).set_requires_grad(true)),
        update_(context.update_of("optimizer", {{"weight", weight_}})) {
    context.track("weight", weight_);
  }

  StepOps step_op(const Batch& batch) override {
    const auto note = [this, size = batch.size()](const std::string& op) {
      const std::string name = get_split() + "/" + op;
      ++calls().count[name];
      calls().examples[name] = size;
    };
    note("step_op");
    at::Tensor loss = weight_.mul(weight_).sum();
    if (fault_ == "infinite") loss = loss.div(0.0);
    if (fault_ == "keeps a graph" && get_split() == "train") {
      if (last_.defined()) loss = loss.add(last_);
      last_ = loss;
    }
    const int64_t size = batch.size();
    return {.train_op =
                [=, this] {
                  note("train_op");
                  update_.step(loss);
                  return Scalars{{"norm", 1}};
                },
            .log_op =
                [=] {
                  note("log_op");
                  return Logs{.scalars = {{"loss", loss}}};
                },
            .eval_op =
                [=] {
                  note("eval_op");
                  return EvalOutputs{.outputs = {{"noise", at::rand({size, 2})}}};
                },
            .log_ops = {{"sample_op",
                         [=] {
                           note("sample_op");
                           return Logs{.images = {{"sample", at::zeros({1, 1, 4, 4})}}};
                         }},
                        {"rare_op", [=] {
                           note("rare_op");
                           return Logs{};
                         }}}};
  }

 private:
  std::string fault_;
  at::Tensor weight_;
  at::Tensor last_;
  Update& update_;
};

STEPOP_REGISTER_ITERATOR(TestTrial, {"For tests.", {}});

constexpr const char* kConfig = R"(
iterator: TestTrial
device: cpu
datasets:
  train: {class: Synthetic, size: 12, shape: [1, 4, 4]}
  validation: {class: Synthetic, size: 7, shape: [1, 4, 4]}
batch_size: 5
test_batch_size: 3
num_steps: 100
optimizer: Adam
log_ops: [train/log_op, {op: validation/sample_op, when: 1000}]
)";

/// What a dry run of this config reports.
std::string told(const std::string& more, bool train = true) {
  calls() = {};
  std::FILE* file = std::tmpfile();
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> closing(file, std::fclose);
  TensorMemory memory;
  Session session(test_config(kConfig + more), train, false, false);
  session.check();
  calls() = {};
  Console console(LogLevel::kInfo, file);
  try_everything(session, memory, console);
  std::string text(static_cast<size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  return text;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("every op that the config calls is run on its own split's batch, five times") {
  const std::string text = told("");
  for (const std::string op : {"train/step_op", "train/train_op", "train/log_op",
                               "validation/sample_op", "validation/eval_op"}) {
    CAPTURE(op);
    CHECK(calls().count[op] == 5);
  }
  CHECK(calls().count["validation/step_op"] == 10);  // for the log and for the evaluation
  CHECK(calls().count.size() == 6);
  CHECK(calls().examples["train/train_op"] == 5);
  CHECK(calls().examples["validation/sample_op"] == 5);
  CHECK(calls().examples["validation/eval_op"] == 3);  // test_batch_size
  CHECK(text.ends_with("all ops that the config calls were run: ok\n"));
}

TEST_CASE("shapes, returned values and ops that nobody calls are told") {
  const std::string text = told("");
  for (const std::string part :
       {"training on train: 5 of 12 examples\n"
        "  batch  tensor                device  memory\n"
        "  image  float32 [5, 1, 4, 4]  cpu      320 B\n",
        "\n  op        median of 5  memory at most  memory left\n  batch   ",
        "\n  train_op     norm  scalar  number\n  log_op       loss  scalar  float32 []\n",
        "\nlogs on validation: 5 of 7 examples\n",
        "\n  sample_op    sample  images  float32 [1, 1, 4, 4]\n",
        "\nevaluation on validation: 3 of 7 examples\n",
        "\n  eval_op      noise  output  float32 [3, 2]\n",
        "\nnot run   rare_op: step_op returns it, the config calls it nowhere\n",
        "state of optimizers "}) {
    CAPTURE(part);
    CAPTURE(text);
    CHECK(contains(text, part));
  }
}

TEST_CASE("without a training there is the evaluation alone") {
  const std::string text = told("", /*train=*/false);
  CHECK(contains(text, "evaluation on validation: 3 of 7 examples\n"));
  CHECK_FALSE(contains(text, "training on"));
  CHECK(calls().count ==
        std::map<std::string, int>({{"validation/step_op", 5}, {"validation/eval_op", 5}}));
}

TEST_CASE("a graph that is kept over a step is found, which one batch does not show") {
  const std::string message = message_of([] { told("fault: keeps a graph"); });
  CAPTURE(message);
  CHECK(message.starts_with("train/train_op: "));
  CHECK(contains(message, "modified by an inplace operation"));
}

TEST_CASE("NaN ends it as it would end a training") {
  const std::string message = message_of([] { told("fault: infinite"); });
  CAPTURE(message);
  CHECK(contains(message, ": the update was not made."));
}

}  // namespace dry_run_test
}  // namespace stepop
