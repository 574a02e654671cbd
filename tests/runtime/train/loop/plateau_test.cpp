// Learning rates that follow a metric or change once an epoch, in a training and over a resume.
#include <doctest/doctest.h>

#include <vector>

#include "tests/message_of.h"
#include "tests/runtime/train/loop/trainer.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace plateau_test {

/// The loss of this training falls and rises; an evaluation after each epoch of 4 steps.
std::string config_of(const std::string& metric) {
  std::string config = trainer_config("num_steps: 32\nckpt_freq: 4\n");
  const std::string lr = "lr: {class: cosine, from: 1e-2, to: 1e-4, steps: 12}";
  return config.replace(
      config.find(lr), lr.size(),
      "lr: {class: plateau, from: 0.3, factor: 0.5, patience: 0, metric: " + metric + "}");
}

/// By what the rate was multiplied so far.
double scale_of(const State& state) { return state.at("schedules.optimizer/lr")[0].item<double>(); }

TEST_CASE("a run that resumes falls where the one that nothing disturbed did") {
  const std::string config = config_of("validation/eval_op/loss");
  TestRun whole(config);
  whole.train();
  const State end = whole.checkpoint(32);
  CHECK(scale_of(end) < 1);
  for (const int64_t step : {8, 16, 24}) {
    CAPTURE(step);
    TestRun again(config, whole, step);
    again.train();
    CHECK(differences(again.checkpoint(32), end) == "");
  }
}

TEST_CASE("a rate that changes once an epoch is the same after a stop within one") {
  std::string config = trainer_config("num_epochs: 3\nlog_freq: 1\nckpt_freq: 2\n");
  const std::string steps = "steps: 12}";
  config.replace(config.find(steps), steps.size(), "steps: end, per: epoch}");
  TestRun whole(config);
  whole.train();
  std::vector<double> rates;
  for (const auto& line : whole.metrics()) {
    if (line.contains("runtime/optimizer/lr")) rates.push_back(line["runtime/optimizer/lr"]);
  }
  REQUIRE(rates.size() == 12);
  for (size_t step = 0; step < rates.size(); ++step) CHECK(rates[step] == rates[step / 4 * 4]);
  CHECK(rates[4] < rates[3]);
  TestRun after(config, whole, 6);
  after.train();
  CHECK(differences(after.checkpoint(12), whole.checkpoint(12)) == "");
}

TEST_CASE("a metric that nothing logs is found before the training") {
  TestRun run(config_of("validation/eval_op/los"));
  CHECK(message_of([&] { run.session.check(); })
            .find("optimizer/lr/metric: no log and no evaluation gives a number "
                  "\"validation/eval_op/los\"") != std::string::npos);
}

}  // namespace plateau_test
}  // namespace stepop
