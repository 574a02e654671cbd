#include "runtime/train/when/logged_metric.h"

#include <doctest/doctest.h>

#include "tests/message_of.h"
#include "tests/runtime/train/loop/trainer.h"
#include "tests/same_state.h"
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

/// The name that a message proposes; the whole message where it proposes none.
std::string proposed(const std::string& message) {
  const std::string before = "did you mean \"";
  const size_t begin = message.find(before);
  if (begin == std::string::npos) return message;
  const size_t end = message.find('"', begin + before.size());
  return message.substr(begin + before.size(), end - begin - before.size());
}

const std::string kCallbacks =
    "eval_hook: {eval_callbacks: {accuracy: accuracy, "
    "iou: {class: MeanIoU, classes: 3}, fails: test_throws}}\n";

TEST_CASE("a metric of a callback is checked before the first step, by what the callback gives") {
  const auto best = [](const std::string& metric) {
    return proposed(checked(kCallbacks + "checkpoints: {metric: " + metric + ", mode: max}"));
  };
  CHECK(best("validation/eval_op/iou/MeanIoU") == "no error");
  CHECK(best("validation/eval_op/iou/iou") == "validation/eval_op/iou/MeanIoU");
  CHECK(best("validation/eval_op/iou/meaniou") == "validation/eval_op/iou/MeanIoU");
  CHECK(best("validation/eval_op/iou") == "validation/eval_op/iou/MeanIoU");
  CHECK(best("validation/eval_op/accuracy") == "validation/eval_op/accuracy/accuracy");
  CHECK(best("accuracy") == "validation/eval_op/accuracy/accuracy");
  CHECK(best("val_acc") == "validation/eval_op/accuracy/accuracy");
  CHECK(best("MeanIoU") == "validation/eval_op/iou/MeanIoU");
  CHECK(best("val_loss") == "validation/eval_op/loss");
  CHECK(best("train_loss") == "train/log_op/loss");
  CHECK(best("loss") == "validation/eval_op/loss");
  // What fails over one batch may be right over all.
  CHECK(best("validation/eval_op/fails/anything") == "no error");
  // Train ops did not run yet.
  CHECK(best("train/train_op/los") == "no error");
  CHECK(best("train/log_op/los") == "train/log_op/loss");
  CHECK(best("train/log_op/comes_later") == "no error");
  CHECK(best("runtime/optimizer/lr") == "no error");
  const std::string all = best("quality");
  CHECK(all.find("there are: ") != std::string::npos);
  CHECK(all.find("validation/eval_op/accuracy/accuracy") != std::string::npos);
  CHECK(all.find("validation/eval_op/iou/MeanIoU") != std::string::npos);
}

TEST_CASE("whatever waits for a metric is checked before the first step") {
  const auto wrong = [](const std::string& more) { return proposed(checked(kCallbacks + more)); };
  const std::string metric = "metric: validation/eval_op/iou/iou";
  const std::string right = "validation/eval_op/iou/MeanIoU";
  CHECK(wrong("stop_when: {" + metric + ", mode: max, patience: 2e}") == right);
  CHECK(wrong("stop_when: {metric: accuracy, mode: max, patience: 2e}") ==
        "validation/eval_op/accuracy/accuracy");
  CHECK(wrong("hooks: {stop: {class: StopAt, " + metric + ", above: 1}}") == right);
  CHECK(wrong("hooks: {stop: {class: StopAt, any: [{metric: train/log_op/loss, below: 0}, {" +
              metric + ", above: 1}]}}") == right);
  const auto spike_of = [](const std::string& loss) {
    Session session(test_config(trainer_config("num_epochs: 2\nhooks: {spike: {class: LossSpike" +
                                               loss + "}}")),
                    true, false, false);
    return proposed(message_of([&] { session.initialize(); }));
  };
  CHECK(spike_of(", loss: optimiser") == "optimizer");
  CHECK(spike_of(", loss: loss") == "no error");
  CHECK(spike_of("") == "no error");
  std::string config = trainer_config("num_epochs: 2\n" + kCallbacks);
  const std::string lr = "{class: cosine, from: 1e-2, to: 1e-4, steps: 12}";
  config.replace(config.find(lr), lr.size(),
                 "{class: plateau, from: 1e-2, mode: max, " + metric + "}");
  Session session(test_config(config), true, false, false);
  CHECK(proposed(message_of([&] { session.check(); })) == right);
}

TEST_CASE("a split that is not there is said as the cause") {
  std::string config = trainer_config(
      "num_epochs: 2\ncheckpoints: {metric: "
      "validation/eval_op/accuracy/accuracy, mode: max}");
  config.replace(config.find("  validation:"), 13, "  valid:");
  Session session(test_config(config), true, false, false);
  CHECK(message_of([&] { session.check(); }) ==
        "test.yaml:13: checkpoints/metric: no log and no evaluation gives a number "
        "\"validation/eval_op/accuracy/accuracy\": there is no datasets/validation, but train, "
        "valid; evaluations take the data that has that name\n"
        "  on the command line: --checkpoints/metric NAME");
  config.replace(config.find("  valid:"), 8, "  validation: null\n  valid:");
  Session without(test_config(config), true, false, false);
  CHECK(message_of([&] {
          without.check();
        }).find("there is no datasets/validation, but train, valid;") != std::string::npos);
}

TEST_CASE("a list of numbers begins with those of callbacks") {
  Session session(test_config(trainer_config("num_epochs: 2\n" + kCallbacks +
                                             "checkpoints: {metric: zzz, mode: max}\n")),
                  true, false, false);
  CHECK(message_of([&] {
          session.check();
        }).find("a number \"zzz\"; there are: validation/eval_op/accuracy/accuracy, ") !=
        std::string::npos);
}

TEST_CASE("a wrong name is a warning with --allow-unknown") {
  Session session(
      test_config(trainer_config("num_epochs: 2\ncheckpoints: {metric: accuracy, mode: max}")),
      true, false, /*allow_unknown=*/true);
  session.check();
  CHECK(session.warnings().find("no log and no evaluation gives a number \"accuracy\"") !=
        std::string::npos);
}

TEST_CASE("callbacks that are tried before a training change no bit of it") {
  const std::string more = "num_epochs: 2\n" + kCallbacks;
  TestRun plain(trainer_config(more));
  plain.session.check();
  plain.train();
  TestRun tried(
      trainer_config(more + "checkpoints: {metric: validation/eval_op/iou/MeanIoU, mode: max}"));
  tried.session.check();
  tried.train();
  CHECK(differences(plain.checkpoint(8), tried.checkpoint(8)) == "");
}

TEST_CASE("a number that needs more than one row is known from a batch of one") {
  const auto best = [](const std::string& metric) {
    std::string config = trainer_config(
        "num_epochs: 2\neval_hook: {eval_callbacks: {fit: {class: regression, prediction: loss, "
        "target: index}}}\ncheckpoints: {mode: max, metric: " +
        metric + "}");
    config.replace(config.find("test_batch_size: 4"), 18, "test_batch_size: 1");
    Session session(test_config(config), true, false, false);
    return proposed(message_of([&] { session.check(); }));
  };
  CHECK(best("validation/eval_op/fit/r2") == "no error");
  CHECK(best("validation/eval_op/fit/r3") == "validation/eval_op/fit/r2");
}

TEST_CASE("of numbers that a short name fits, that of the whole split is proposed") {
  const std::vector<std::string> names = {"train/log_op/accuracy", "validation/log_op/accuracy",
                                          "validation/eval_op/accuracy/accuracy",
                                          "validation/eval_op/loss", "train/log_op/loss"};
  CHECK(meant_name("val_acc", names) == "validation/eval_op/accuracy/accuracy");
  CHECK(meant_name("accuracy", names) == "validation/eval_op/accuracy/accuracy");
  CHECK(meant_name("train_acc", names) == "train/log_op/accuracy");
  CHECK(meant_name("validation/log_op/acuracy", names) == "validation/log_op/accuracy");
  CHECK(meant_name("train/log_opp/loss", names) == "train/log_op/loss");
}

TEST_CASE("a sweep's short name is checked against the same names") {
  const auto ranked = [](const std::string& name) {
    return proposed(message_of([&] {
      Session session(test_config(trainer_config("num_epochs: 2\n" + kCallbacks)), true, false,
                      false);
      session.check({}, name);
    }));
  };
  CHECK(ranked("accuracy") == "no error");
  CHECK(ranked("validation/accuracy") == "no error");
  CHECK(ranked("acc") == "validation/eval_op/accuracy/accuracy");
  CHECK(ranked("of_a_train_op") == "no error");
}

TEST_CASE("of a callback's metric its name is checked before the first step") {
  const auto with = [](const std::string& metric) {
    return checked("eval_hook: {eval_callbacks: {accuracy: accuracy}}\ncheckpoints: {metric: " +
                   metric + ", mode: max}");
  };
  CHECK(with("validation/eval_op/accuracy/accuracy") == "no error");
  CHECK(with("validation/eval_op/accuracy/top_5")
            .find("did you mean \"validation/eval_op/accuracy/accuracy\"?") != std::string::npos);
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
