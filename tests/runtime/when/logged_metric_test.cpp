#include "runtime/when/logged_metric.h"

#include <doctest/doctest.h>

#include "tests/message_of.h"
#include "tests/runtime/loop/trainer.h"
#include "tests/test_run.h"

namespace stepop {
namespace logged_metric_test {

std::string trained_with(const std::string& more) {
  return message_of([&] {
    TestRun run(trainer_config("num_epochs: 2\n" + more));
    run.train();
  });
}

TEST_CASE(
    "a metric for checkpoints that nothing logs ends the training after its first evaluation") {
  CHECK(trained_with("checkpoints: {metric: validation/eval_op/los, mode: min}")
            .ends_with(": checkpoints/metric: no log and no evaluation gave a number "
                       "\"validation/eval_op/los\"; did you mean \"validation/eval_op/loss\"?"));
  CHECK(trained_with("checkpoints: {metric: validation/eval_op/loss, mode: min}") == "no error");
  // It may come with the next log.
  CHECK(trained_with("checkpoints: {metric: train/log_op/los, mode: min}") == "no error");
}

TEST_CASE("a metric whose callback failed may come with the next evaluation") {
  const std::string fails = "\neval_hook: {eval_callbacks: {accuracy: test_throws}}";
  const std::string metric = "metric: validation/eval_op/accuracy/accuracy, mode: max";
  CHECK(trained_with("checkpoints: {" + metric + "}" + fails) == "no error");
  CHECK(trained_with("stop_when: {" + metric + ", patience: 5e}" + fails) == "no error");
}

}  // namespace logged_metric_test
}  // namespace stepop
