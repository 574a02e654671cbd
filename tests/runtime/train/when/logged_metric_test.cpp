#include "runtime/train/when/logged_metric.h"

#include <doctest/doctest.h>

#include "tests/message_of.h"
#include "tests/runtime/train/loop/trainer.h"
#include "tests/test_run.h"

namespace stepop {
namespace logged_metric_test {

std::string trained_with(const std::string& more) {
  return message_of([&] {
    TestRun run(trainer_config("num_epochs: 2\n" + more));
    run.train();
  });
}

/// What the check before a training says.
std::string checked(const std::string& more) {
  return message_of([&] {
    Session session(test_config(trainer_config("num_epochs: 2\n" + more)), true, false, false);
    session.check();
  });
}

TEST_CASE("a misspelt metric is found before the first step, with what corrects it") {
  const std::string problem = "no log and no evaluation gives a number ";
  CHECK(checked("checkpoints: {metric: validation/eval_op/los, mode: min}") ==
        "test.yaml:13: checkpoints/metric: " + problem +
            "\"validation/eval_op/los\"; did you mean \"validation/eval_op/loss\"?\n"
            "  on the command line: --checkpoints/metric validation/eval_op/loss");
  CHECK(checked("stop_when: {metric: validation/eval_op/los, mode: min, patience: 2e}") ==
        "test.yaml:13: stop_when/metric: " + problem +
            "\"validation/eval_op/los\"; did you mean \"validation/eval_op/loss\"?\n"
            "  on the command line: --stop_when/metric validation/eval_op/loss");
  CHECK(checked("checkpoints: {metric: something/else, mode: min}")
            .ends_with("  on the command line: --checkpoints/metric NAME"));
  CHECK(checked("checkpoints: {metric: validation/eval_op/loss, mode: min}") == "no error");
}

TEST_CASE("of a callback's metric its name is checked before the first step") {
  const auto with = [](const std::string& metric) {
    return checked("eval_hook: {eval_callbacks: {accuracy: accuracy}}\ncheckpoints: {metric: " +
                   metric + ", mode: max}");
  };
  CHECK(with("validation/eval_op/accuracy/accuracy") == "no error");
  CHECK(with("validation/eval_op/accuracy/top_5") == "no error");  // known once it ran
  CHECK(with("validation/eval_op/acuracy/accuracy")
            .find("did you mean \"validation/eval_op/accuracy/accuracy\"?") != std::string::npos);
}

TEST_CASE(
    "a metric that turns out to be missing ends the training with a command that corrects it") {
  const std::string message =
      trained_with("checkpoints: {metric: validation/eval_op/los, mode: min}");
  CHECK(message.find(": checkpoints/metric: no log and no evaluation gives a number "
                     "\"validation/eval_op/los\"; did you mean \"validation/eval_op/loss\"?\n"
                     "what was saved is whole; resume with the right name:  ") !=
        std::string::npos);
  CHECK(message.ends_with(" -t --checkpoints/metric validation/eval_op/loss"));
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
