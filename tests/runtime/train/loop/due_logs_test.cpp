// What is logged when, and what a log must not change.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>

#include "runtime/train/networks/evaluation_mode.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/optim/update.h"
#include "tests/message_of.h"
#include "tests/runtime/train/loop/trainer.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace due_logs_test {

using Steps = std::vector<int64_t>;

/// Returns numbers from its train op, and no log op.
class TestReturned : public Iterator {
 public:
  using Iterator::Iterator;
  StepOps step_op(const Batch&) override {
    ++calls()[get_split()];
    return {.train_op = [this] { return Scalars{{"step", global_step() + 1}}; }};
  }
  static std::map<std::string, int>& calls() {
    static std::map<std::string, int> calls;
    return calls;
  }
};

STEPOP_REGISTER_ITERATOR(TestReturned, {"For tests.", {}});

constexpr const char* kReturned = R"(
iterator: TestReturned
datasets:
  train: {class: Synthetic, size: 40, shape: [1, 2, 2]}
  validation: {class: Synthetic, size: 40, shape: [1, 2, 2]}
batch_size: 4
num_steps: 8
eval_hook: null
)";

/// The steps at which there is a number of that name, and the number.
std::map<int64_t, double> logged(const TestRun& run, const std::string& name) {
  std::map<int64_t, double> numbers;
  for (const auto& line : run.metrics()) {
    if (line.contains(name)) numbers[line["step"]] = line[name];
  }
  return numbers;
}

TEST_CASE("what train ops return is logged without a log op: a mean since the last log") {
  const std::map<int64_t, double> growing = {
      {1, 1}, {3, 2.5}, {7, 5.5}, {8, 8}};  // and the last step
  for (const std::string more : {"", "log_ops: []"}) {
    CAPTURE(more);
    TestReturned::calls().clear();
    TestRun run(kReturned + more);
    run.session.check();
    const int of_check = TestReturned::calls()["validation"];
    run.train();
    CHECK(logged(run, "train/train_op/step") == growing);
    CHECK(logged(run, "runtime/process_mb").size() == 4);
    CHECK(TestReturned::calls()["validation"] == of_check);  // no forward pass for nothing
  }
  TestRun often(std::string(kReturned) + "log_ops: []\nlog_freq: {every: 3, at_end: true}");
  often.session.check();
  often.train();
  CHECK(logged(often, "train/train_op/step") ==
        std::map<int64_t, double>{{3, 2}, {6, 5}, {8, 7.5}});
}

TEST_CASE("the last step is logged, once, and a training that is continued is as if it was not") {
  // The rate follows the loss of each log, and so depends on which steps are logged.
  const auto config = [](int steps, const std::string& more) {
    std::string text = trainer_config(fmt::format("num_steps: {}\nlog_freq: 4\n", steps) + more);
    const std::string lr = "lr: {class: cosine, from: 1e-2, to: 1e-4, steps: 12}";
    return text.replace(text.find(lr), lr.size(),
                        "lr: {class: plateau, from: 0.1, factor: 0.5, patience: 0, metric: "
                        "validation/log_op/loss, mode: max}");
  };
  for (const std::string more : {"", "accumulate: 2\n"}) {
    CAPTURE(more);
    TestRun whole(config(15, more));
    whole.train();
    TestRun first(config(9, more));
    first.train();
    const auto steps_of = [](const TestRun& run) {
      Steps steps;
      for (const auto& [step, loss] : logged(run, "train/log_op/loss")) steps.push_back(step);
      return steps;
    };
    CHECK(steps_of(first) == Steps{1, 3, 7, 9});
    CHECK(steps_of(whole) == Steps{1, 3, 7, 11, 15});
    CHECK(logged(first, "validation/log_op/loss").contains(9));
    TestRun longer(config(15, more), first, 9);
    longer.train();
    CHECK(differences(longer.checkpoint(15), whole.checkpoint(15)) == "");
    CHECK(logged(longer, "validation/log_op/loss").at(15) ==
          logged(whole, "validation/log_op/loss").at(15));
  }
}

TEST_CASE("where there is nothing to log, no line is written") {
  TestRun run(
      trainer_config("num_steps: 4\nlog_ops: []\ntelemetry: {active: false}\n"
                     "train_ops: [{op: train/train_op, when: 100}]\neval_hook: null"));
  run.train();
  CHECK(run.metrics().empty());
}

/// Passes random numbers through its network wherever `how` says.
class TestLogPasses : public Iterator {
 public:
  explicit TestLogPasses(const Context& context)
      : Iterator(context),
        model_(context.network<Network>()),
        update_(context.update()),
        how_(config().get<std::string>("how")) {
    context.track("own_norm", *norm_);
  }

  StepOps step_op(const Batch& batch) override {
    const auto pass = [=, this] {
      norm_->forward(at::randn({16, 4}));
      return model_->forward(at::randn({16, 3, 3}) * 5).mean();
    };
    if (how_ == "step_op") pass();
    return {.train_op =
                [=, this] {
                  norm_->forward(at::ones({2, 4}));
                  update_.step(model_->forward(batch["image"]).square().mean());
                },
            .log_op =
                [=, this] {
                  Logs logs{.scalars = {{"trains", model_->is_training() ? 1 : 0}}};
                  if (how_ != "evaluation mode") {
                    pass();
                    return logs;
                  }
                  const EvaluationMode guard(*model_);
                  logs.scalars.set("guarded", model_->is_training() ? 1 : 0);
                  const at::Tensor image = at::ones({2, 3, 3});
                  logs.scalars.set("differs",
                                   (model_->forward(image) - model_->forward(image)).abs().max());
                  return logs;
                }};
  }

 private:
  std::shared_ptr<Network> model_;
  Update& update_;
  torch::nn::BatchNorm1d norm_{torch::nn::BatchNormOptions(4).affine(false)};
  std::string how_;
};

STEPOP_REGISTER_ITERATOR(TestLogPasses, {"For tests.", {{"how", "", "log_op, step_op, ..."}}});

std::string passes(const std::string& how, const std::string& more) {
  std::string text =
      trainer_config("num_steps: 6\ndevice: cpu\neval_hook: null\nhow: " + how + "\n" + more);
  return text.replace(text.find("TestTrainer"), 11, "TestLogPasses");
}

State after_six(const std::string& how, const std::string& more) {
  TestRun run(passes(how, more));
  run.train();
  return run.checkpoint(6);
}

TEST_CASE("a forward pass in a log op changes no buffer: of a network, nor of a tracked module") {
  for (const std::string how : {"log_op", "evaluation mode"}) {
    CAPTURE(how);
    const State rarely = after_six(how, "log_freq: 1000\nstart_log_freq: 1000");
    CHECK(rarely.at("model.norm.num_batches_tracked").item<int64_t>() == 6);
    CHECK(rarely.at("own_norm.num_batches_tracked").item<int64_t>() == 6);
    CHECK(differences(after_six(how, "log_freq: 1"), rarely) == "");
  }
}

TEST_CASE("neither does a step_op that runs for a log alone, nor what it draws") {
  const std::string rarely_trains = "train_ops: [{op: train/train_op, when: 3}]\n";
  const State rarely = after_six("step_op", rarely_trains + "log_freq: 1000\nstart_log_freq: 1000");
  CHECK(differences(after_six("step_op", rarely_trains + "log_freq: 1"), rarely) == "");
}

TEST_CASE(
    "a log op runs in the mode of its split, whatever ran before, and may ask for the other") {
  TestRun run(passes("evaluation mode", "log_freq: 1\nlog_ops: [validation/log_op, train/log_op]"));
  run.train();
  for (const auto& line : run.metrics()) {
    CHECK(line["train/log_op/trains"] == 1);
    CHECK(line["validation/log_op/trains"] == 0);
    CHECK(line["train/log_op/guarded"] == 0);
    CHECK(line["train/log_op/differs"] == 0);
  }
}

TEST_CASE("a guard of evaluation mode gives each part the mode back that it had") {
  TestRun run(passes("log_op", ""));
  torch::nn::Module& model = *run.session.context().networks.get("model");
  const auto modes = [&] {
    std::string text;
    for (const auto& part : model.modules()) text += part->is_training() ? 't' : 'e';
    return text;
  };
  model.train();
  model.named_children()["norm"]->eval();
  {
    const EvaluationMode guard(model);
    CHECK(modes() == "eeeee");
  }
  CHECK(modes() == "ttett");
  model.eval();
  {
    const EvaluationMode guard(model);
    CHECK(modes() == "eeeee");
  }
  CHECK(modes() == "eeeee");
}

TEST_CASE("the learning rate of the first log after a resume is that of an undisturbed run") {
  const std::string rarely =
      "train_ops: [{op: train/train_op, when: 5}]\nlog_freq: 1\nckpt_freq: 1\neval_hook: null\n";
  const auto rates = [](const TestRun& run) { return logged(run, "runtime/optimizer/lr"); };
  TestRun whole(trainer_config(rarely + "num_steps: 9"));
  whole.train();
  TestRun before(trainer_config(rarely + "num_steps: 7"));
  before.train();
  TestRun after(trainer_config(rarely + "num_steps: 9"), before, 7);
  after.train();
  CHECK(rates(whole).at(6) == rates(whole).at(9));
  CHECK(rates(after) == rates(whole));
  // A checkpoint from before that was saved is resumed.
  Checkpoint old = load_checkpoint(before.checkpoint_path(7));
  CHECK(old.tensors.erase("optimizer.lr_step") == 1);
  TestRun from_old(trainer_config(rarely + "num_steps: 9"), before, old);
  from_old.train();
  CHECK(rates(from_old).size() == 9);
}

}  // namespace due_logs_test
}  // namespace stepop
