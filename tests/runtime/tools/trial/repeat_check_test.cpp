#include "runtime/tools/trial/repeat_check.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/rand_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <doctest/doctest.h>

#include <atomic>
#include <random>

#include "runtime/train/networks/network.h"
#include "runtime/train/optim/update.h"
#include "tests/message_of.h"
#include "tests/runtime/train/loop/trainer.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace repeat_check_test {

/// Keeps state of its own, which it tracks or not.
class TestKeeper : public Iterator {
 public:
  explicit TestKeeper(const Context& context)
      : Iterator(context),
        keeps_(config().get("keeps", "nothing")),
        model_(context.network<Network>()),
        update_(context.update()) {
    if (config().get("tracked", false)) {
      context.track("calls", calls_);
      context.track("momentum", momentum_);
    }
  }

  StepOps step_op(const Batch& batch) override {
    const at::Tensor logits = model_->forward(batch["image"]);
    const at::Tensor loss = at::cross_entropy_loss(logits, batch["class"]);
    return {.train_op = [=, this] { update_.step(loss * weight(loss)); },
            .log_op =
                [=] {
                  return Logs{.scalars = {{"loss", loss}}};
                },
            .eval_op =
                [=] {
                  return EvalOutputs{.outputs = {{"logits", logits}}};
                }};
  }

 private:
  double weight(const at::Tensor& loss) {
    if (keeps_ == "a count") return static_cast<double>(++calls_);
    if (keeps_ == "a generator") return std::uniform_real_distribution<>()(generator_);
    if (keeps_ == "a momentum") {
      momentum_ = momentum_.defined() ? momentum_ * 0.9 + loss.detach() : loss.detach();
      return momentum_.item<double>();
    }
    return at::rand_like(loss).item<double>();
  }

  std::string keeps_;
  std::shared_ptr<Network> model_;
  Update& update_;
  int64_t calls_ = 0;
  at::Tensor momentum_;
  std::mt19937_64 generator_;
};

STEPOP_REGISTER_ITERATOR(TestKeeper, {"For tests.", {}});

Repeats checked(const std::string& more, bool train_first = false) {
  std::string yaml = trainer_config(more);
  yaml.replace(yaml.find("TestTrainer"), 11, "TestKeeper");
  TestRun run(yaml + "num_steps: 5\nema: {decay: 0.9}\n");
  if (train_first) run.train();
  const Tracker& tracker = run.session.context().tracker;
  run.session.context().networks.start_averages();
  State before;
  for (const auto& [name, tensor] : tracker.save()) before.emplace(name, tensor.clone());
  const Position position = run.session.position();
  Repeats repeats = check_repeats(run.session);
  CHECK(differences(before, tracker.save()) == "");
  CHECK(run.session.position().global_step == position.global_step);
  return repeats;
}

TEST_CASE("a training whose state is tracked repeats to the bit, and is left as it was") {
  CHECK(checked("keeps: nothing").warning == "");
  CHECK(checked("keeps: nothing", /*train_first=*/true).warning == "");
  CHECK(checked("keeps: a count\ntracked: true").warning == "");
  CHECK(checked("keeps: a momentum\ntracked: true").warning == "");
}

TEST_CASE("state that is used and not tracked shows when steps are repeated") {
  for (const char* keeps : {"a count", "a momentum", "a generator"}) {
    const Repeats repeats = checked(std::string("keeps: ") + keeps + "\ndevice: cpu");
    CAPTURE(repeats.warning);
    CHECK(repeats.is_from_iterator);
    CHECK(repeats.warning.starts_with(
        "two training steps, repeated from the same state, gave different results in "
        "ema_model.first.bias, "));
    CHECK(repeats.warning.ends_with(
        ": the iterator keeps something that is not tracked (a counter, an optimizer, a random "
        "generator), or an operation is not deterministic. A run that resumes will differ from one "
        "that was never stopped"));
  }
}

/// Keeps a count, or draws numbers of its own; or does as it should.
class TestUnsteady : public Dataset {
 public:
  explicit TestUnsteady(const Config& params) : fault_(params.get<std::string>("fault")) {}
  int64_t size() const override { return 16; }
  Example get(int64_t index, Random& random) const override {
    double value = random.uniform();
    if (fault_ == "random") value = at::rand({}).item<double>();
    std::string text = "a";
    if (fault_ == "count") text += std::to_string(calls_++);
    return {.tensors = {{"image", at::full({1, 3, 3}, value, at::kFloat)},
                        {"class", at::scalar_tensor(index % 3, at::kLong)}},
            .texts = {{"name", text}}};
  }

 private:
  std::string fault_;
  mutable std::atomic<int64_t> calls_{0};
};
STEPOP_REGISTER_DATASET(TestUnsteady, {"For tests.", {{"fault", "", "what it does"}}});

TEST_CASE("a dataset that gives other examples when it is asked again is named, with the key") {
  const auto message = [](const std::string& fault) {
    return message_of([&] {
      std::string yaml = trainer_config("num_steps: 5");
      const std::string data = "{class: Synthetic, size: 29, shape: [1, 3, 3], classes: 3}";
      yaml.replace(yaml.find(data), data.size(), "{class: TestUnsteady, fault: " + fault + "}");
      TestRun run(yaml);
      check_repeats(run.session);
    });
  };
  const std::string said =
      " of the same examples differs when they are read again: take random numbers from the "
      "`random` that get receives, and keep no counter in the dataset. A run that resumes would "
      "differ from one that was never stopped";
  CHECK(message("random") == "test.yaml:5: datasets/train: image" + said);
  CHECK(message("count") == "test.yaml:5: datasets/train: name" + said);
  CHECK(message("none") == "no error");
}

}  // namespace repeat_check_test
}  // namespace stepop
