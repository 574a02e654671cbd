#include "runtime/core/log/console_sink.h"

#include <doctest/doctest.h>

#include <cstdio>

#include "tests/scratch_folder.h"

namespace stepop {
namespace console_sink_test {

/// What a console that is no terminal prints of one event.
std::string printed(LogLevel level, const ConsoleSink::Plan& plan, const LogEvent& event,
                    const LogRecord& record) {
  const ScratchFolder folder;
  std::FILE* out = std::fopen(folder.path("out").c_str(), "w");
  {
    Console console(level, out);
    ConsoleSink sink(console, plan);
    sink.begin({.folder = "run/train"});
    sink.evaluation_begins();
    sink.write(event, record);
  }
  std::fclose(out);
  return read_bytes(folder.path("out"));
}

constexpr ConsoleSink::Plan kPlan{.trains = true, .num_steps = 100, .num_epochs = 4};

TEST_CASE("a log is a line with its place and its scalars by op") {
  const LogRecord record{.scalars = {{"train/log_op/loss", 0.5},
                                     {"train/log_op/accuracy", 1},
                                     {"validation/log_op/loss", 0.25}}};
  CHECK(printed(LogLevel::kInfo, kPlan, {.step = 30, .epoch = 1.25}, record) ==
        "epoch 2/4  step 30/100  train/log_op: loss 0.5 accuracy 1  validation/log_op: loss "
        "0.25\n");
  CHECK(printed(LogLevel::kInfo, kPlan, {.step = 0, .epoch = 0}, record).starts_with("epoch 1/4 "));
  // At the end of an epoch it is that epoch.
  CHECK(
      printed(LogLevel::kInfo, kPlan, {.step = 50, .epoch = 2}, record).starts_with("epoch 2/4 "));
}

TEST_CASE("an evaluation is a line, without an epoch where nothing is trained") {
  const LogRecord record{.scalars = {{"validation/eval_op/loss", 0.5}}, .is_evaluation = true};
  CHECK(printed(LogLevel::kInfo, kPlan, {.step = 50, .epoch = 2}, record) ==
        "epoch 2/4  step 50  validation/eval_op: loss 0.5\n");
  CHECK(printed(LogLevel::kInfo, {.trains = false}, {.step = 50, .epoch = 2}, record) ==
        "step 50  validation/eval_op: loss 0.5\n");
  CHECK(printed(LogLevel::kInfo, {.trains = false}, {.step = 50}, {.is_evaluation = true}) ==
        "step 50  evaluated, without a number to show\n");
}

TEST_CASE("what several callbacks say is shown once, with their names") {
  const std::string op = "validation/eval_op/";
  const auto shown = [&](const OrderedMap<double>& scalars) {
    return printed(LogLevel::kInfo, {.trains = false}, {.step = 5},
                   {.scalars = scalars, .is_evaluation = true});
  };
  CHECK(shown({{op + "loss", 0.5},
               {op + "accuracy/accuracy", 0.75},
               {op + "matrix/accuracy", 0.75},
               {op + "matrix/balanced_accuracy", 0.75},
               {op + "report/accuracy", 0.75}}) ==
        "step 5  validation/eval_op: loss 0.5  validation/eval_op/accuracy: accuracy 0.75 (also "
        "matrix, report)  validation/eval_op/matrix: balanced_accuracy 0.75\n");
  // Other numbers, and another evaluation, are shown.
  CHECK(shown({{op + "a/mae", 1}, {op + "b/mae", 2}, {"test/eval_op/a/mae", 1}}) ==
        "step 5  validation/eval_op/a: mae 1  validation/eval_op/b: mae 2  test/eval_op/a: mae "
        "1\n");
  CHECK(shown({{op + "loss", 1}, {"test/eval_op/loss", 1}}) ==
        "step 5  validation/eval_op: loss 1  test/eval_op: loss 1\n");
}

TEST_CASE("texts are printed, long ones cut between characters") {
  const auto text = [](const std::string& content) {
    return printed(LogLevel::kInfo, kPlan, {}, {.texts = {{"train/log_op/sample", content}}});
  };
  CHECK(text("once upon\na time") == "train/log_op/sample: once upon\na time\n");
  std::string umlauts = "x";
  for (int i = 0; i < 2000; ++i) umlauts += "ä";
  CHECK(text(umlauts) ==
        "train/log_op/sample: " + umlauts.substr(0, 1999) + " ... (2002 more bytes in its file)\n");
}

TEST_CASE("the level debug says how long an evaluation took") {
  const std::string evaluation =
      printed(LogLevel::kDebug, kPlan, {.step = 7},
              {.scalars = {{"validation/eval_op/loss", 1}}, .is_evaluation = true});
  CHECK(evaluation.find("\nthe evaluation took 0.0") != std::string::npos);
}

TEST_CASE("a progress bar is filled by halves") {
  CHECK(progress_bar(0, 4) == "────");
  CHECK(progress_bar(0.625, 4) == "━━╸─");
  CHECK(progress_bar(2, 4) == "━━━━");
}

}  // namespace console_sink_test
}  // namespace stepop
