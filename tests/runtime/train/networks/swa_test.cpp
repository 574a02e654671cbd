#include "runtime/train/networks/swa.h"
#include "runtime/train/iterator/splits.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <doctest/doctest.h>

#include "runtime/train/loop/batch_norm.h"
#include "runtime/train/networks/load_network.h"
#include "tests/message_of.h"
#include "tests/runtime/train/loop/trainer.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace swa_test {

State copy(State state) {
  for (auto& [name, tensor] : state) tensor = tensor.detach().clone();
  return state;
}

State without_averages(State state) {
  std::erase_if(state, [](const auto& entry) { return entry.first.starts_with("swa"); });
  return state;
}

bool is_buffer(const std::string& name) {
  return name.find("running_") != std::string::npos || name.ends_with("num_batches_tracked");
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

/// Keeps the weights after each step; [0] is before the first.
class Record : public Hook {
 public:
  explicit Record(Tracker& tracker) : tracker_(tracker) {}
  void before_step(int64_t) override {
    if (weights.empty()) weights.push_back(copy(tracker_.save("model")));
  }
  void after_step(int64_t) override { weights.push_back(copy(tracker_.save("model"))); }

  std::vector<State> weights;

 private:
  Tracker& tracker_;
};

TEST_CASE("the averages are the plain mean of the snapshots") {
  struct Case {
    std::string swa;
    std::vector<size_t> steps;
  };
  for (const Case& each : {Case{"{from: 3, every: 2}", {3, 5, 7, 9}}, Case{"{from: 1e}", {4, 8}},
                           Case{"{every: 1, until: 3}", {1, 2, 3}}, Case{"{every: 7}", {7}}}) {
    CAPTURE(each.swa);
    TestRun run(trainer_config("num_steps: 10\nswa: " + each.swa));
    Record record(run.session.context().tracker);
    run.train({&record});
    const State state = run.checkpoint(10);
    CHECK(state.at("swa.count").item<int64_t>() == static_cast<int64_t>(each.steps.size()));
    for (const auto& [name, tensor] : record.weights[0]) {
      if (is_buffer(name)) continue;
      at::Tensor mean = at::zeros_like(tensor, at::kDouble);
      for (const size_t step : each.steps) mean += record.weights.at(step).at(name);
      mean /= static_cast<double>(each.steps.size());
      CHECK(distance(state.at("swa_model." + name), mean) < 1e-7);
    }
  }
}

TEST_CASE("before the first snapshot there are no averages, and the weights are evaluated") {
  const auto loss = [](const std::string& more) {
    TestRun run(trainer_config("num_steps: 4\n" + more));
    run.train();
    CHECK_FALSE(run.checkpoint(4).contains("swa_model.norm.weight"));
    return run.metrics().back()["validation/eval_op/loss"].get<double>();
  };
  CHECK(loss("swa: {from: 5}\neval_weights: swa") == loss(""));
}

TEST_CASE("averages, their statistics and their evaluations never change the training") {
  const auto trained = [](const std::string& more) {
    TestRun run(trainer_config("num_steps: 9\n" + more));
    run.train();
    return without_averages(run.checkpoint(9));
  };
  const State plain = trained("");
  CHECK(differences(trained("swa: {every: 2}"), plain) == "");
  CHECK(differences(trained("swa: {every: 2}\neval_weights: swa\neval_hook: {freq: 1}"), plain) ==
        "");
}

TEST_CASE("the statistics of batch normalization are the mean over the training's batches") {
  for (const int64_t most : {0, 2}) {
    CAPTURE(most);
    TestRun run(
        trainer_config("num_steps: 8\neval_weights: swa\nswa: {from: 2, every: 3, "
                       "batch_norm_batches: " +
                       std::to_string(most) + "}"));
    run.train();
    const State state = run.checkpoint(8);
    const BatchOrder& order = run.session.context().splits.order("train");
    at::Tensor mean = at::zeros({6}, at::kDouble);
    at::Tensor variance = at::zeros({6}, at::kDouble);
    const int64_t count = most > 0 ? most : order.batches_per_epoch();
    for (int64_t i = 0; i < count; ++i) {
      const Batch batch = run.session.context().splits.batch("train", order, i);
      const at::Tensor hidden = at::linear(batch["image"].flatten(1).to(at::kDouble),
                                           state.at("swa_model.first.weight").to(at::kDouble),
                                           state.at("swa_model.first.bias").to(at::kDouble));
      mean += hidden.mean(0) / count;
      variance += hidden.var(0, /*unbiased=*/true) / count;
    }
    CHECK(distance(state.at("swa_model.norm.running_mean"), mean) < 1e-5);
    CHECK(distance(state.at("swa_model.norm.running_var"), variance) < 1e-5);
    CHECK(state.at("swa_model.norm.num_batches_tracked").item<int64_t>() == count);
    CHECK(distance(state.at("model.norm.running_mean"), mean) > 1e-3);
    CHECK(state.at("swa.measured").item<int64_t>() == 3);
  }
}

TEST_CASE("a resumed run ends with the averages of one that was never stopped") {
  const std::string swa = "\nswa: {from: 2, every: 3}\neval_weights: swa\nckpt_freq: 1";
  TestRun whole(trainer_config("num_steps: 11" + swa));
  whole.train();
  for (const int64_t stop : {1, 2, 4, 6, 8}) {
    CAPTURE(stop);
    TestRun before(trainer_config("num_steps: 11" + swa));
    before.train();
    TestRun after(trainer_config("num_steps: 11" + swa), before, stop);
    after.train();
    for (const int64_t step : after.checkpoints()) {
      CAPTURE(step);
      CHECK(differences(after.checkpoint(step), whole.checkpoint(step)) == "");
    }
  }
}

TEST_CASE("a checkpoint without an evaluation lacks the statistics, and one alone measures them") {
  const std::string swa = "\nswa: {every: 2}\neval_weights: swa";
  TestRun evaluated(trainer_config("num_steps: 6" + swa));
  evaluated.train();
  TestRun saved(trainer_config("num_steps: 7\nckpt_freq: 6\neval_hook: {freq: 7}" + swa));
  saved.train();
  CHECK(saved.checkpoint(6).at("swa.measured").item<int64_t>() == 0);
  CHECK(evaluated.checkpoint(6).at("swa.measured").item<int64_t>() == 3);

  const State state = saved.checkpoint(6);
  CHECK(state.at("swa_model.norm.running_mean").equal(state.at("model.norm.running_mean")));
  Session session(test_config(trainer_config("num_steps: 7" + swa)), /*train=*/false, false, false);
  session.restore_for_evaluation(load_checkpoint(saved.checkpoint_path(6)), "model-6");
  const Context& context = session.context();
  const State before = copy(context.tracker.save("model"));
  measure_batch_norm(session.iterator(), context, session.position(), {});
  CHECK(context.networks.averages_to_measure() == nullptr);
  CHECK(differences(context.tracker.save("model"), before) == "");
  for (const auto& [name, tensor] : context.tracker.save("swa_model")) {
    CAPTURE(name);
    CHECK(tensor.equal(evaluated.checkpoint(6).at("swa_model." + name)));
  }
}

TEST_CASE("an interruption while statistics are measured leaves everything as it was") {
  TestRun run(
      trainer_config("num_steps: 7\nckpt_freq: 6\neval_hook: {freq: 7}\nswa: {every: 2}\n"
                     "eval_weights: swa"));
  run.train();
  TestRun again(trainer_config("num_steps: 7\nswa: {every: 2}\neval_weights: swa"), run, 6);
  const Context& context = again.session.context();
  const State before = copy(context.tracker.save());
  int batches = 0;
  CHECK_THROWS_AS(measure_batch_norm(again.session.iterator(), context, again.session.position(),
                                     [&] {
                                       if (++batches == 3) throw Interrupted("SIGTERM arrived");
                                     }),
                  Interrupted);
  CHECK(differences(context.tracker.save(), before) == "");
  CHECK(context.networks.averages_to_measure() != nullptr);
}

TEST_CASE("averages come from a checkpoint that was saved with swa") {
  TestRun before(trainer_config("num_steps: 1"));
  before.train();
  const auto message = [&](const std::string& more) {
    Session session(test_config(trainer_config("num_steps: 3\n" + more)), false, false, false);
    return message_of([&] {
      session.restore_for_evaluation({before.checkpoint(1), {}, {}}, "model-1");
    });
  };
  CHECK(message("swa: {every: 2}\neval_weights: swa") ==
        "model-1: no averages: the checkpoint was saved without swa. Use eval_weights: model");
  CHECK(message("swa: {every: 2}") == "no error");
  // A resume that adds swa begins to average.
  TestRun after(trainer_config("num_steps: 3\nswa: {every: 2}"), before, 1);
  after.train();
  CHECK(after.checkpoint(3).at("swa.count").item<int64_t>() == 1);
}

TEST_CASE("EMA and SWA may be kept side by side, and either be evaluated") {
  const auto loss = [](const std::string& weights) {
    TestRun run(trainer_config("num_steps: 9\nema: {decay: 0.9}\nswa: {every: 2}\neval_weights: " +
                               weights));
    run.train();
    CHECK(run.checkpoint(9).contains("ema_model.last.bias"));
    CHECK(run.checkpoint(9).contains("swa_model.last.bias"));
    return run.metrics().back()["validation/eval_op/loss"].get<double>();
  };
  CHECK(loss("ema") != loss("swa"));
  CHECK(loss("model") != loss("swa"));
}

TEST_CASE("a program of one's own takes the averages that the run evaluates") {
  TestRun run(trainer_config("num_steps: 6\nswa: {every: 2}\neval_weights: swa"));
  run.train();
  const auto network = load_network(run.root());
  for (const auto& [name, tensor] : tensors_of(*network)) {
    CAPTURE(name);
    CHECK(tensor.equal(run.checkpoint(6).at("swa_model." + name)));
  }
}

TEST_CASE("what no snapshots can be taken by is told with its place") {
  const auto message = [](const std::string& more) {
    return message_of([&] { TestRun(trainer_config("num_steps: 1\n" + more)); });
  };
  CHECK(message("eval_weights: swa") ==
        "test.yaml:13: eval_weights: there are no averages: add swa: {from: 5e, every: 1e}");
  CHECK(message("swa: 5e") ==
        "test.yaml:13: swa: expected a map such as {from: 5e, every: 1e}, found \"5e\"");
  CHECK(message("swa: {every: 5m}") ==
        "test.yaml:13: swa: expected steps (100) or epochs (2e), found minutes: what a training "
        "does may not depend on the clock");
  CHECK(message("swa: {at_start: true}") ==
        "test.yaml:13: swa/at_start: a snapshot is taken after a step: from says which");
  CHECK(message("swa: {networks: [modl]}") ==
        "test.yaml:13: swa/networks/0: no network \"modl\"; there are: model");
  CHECK(message("swa: {evry: 1}").find("did you mean \"swa/every\"?") != std::string::npos);
}

}  // namespace swa_test
}  // namespace stepop
