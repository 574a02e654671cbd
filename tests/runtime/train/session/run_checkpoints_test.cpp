#include "runtime/train/session/run_checkpoints.h"

#include <doctest/doctest.h>

#include <cmath>
#include <variant>

#include "eval_out/callbacks/callback.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "tests/runtime/train/loop/trainer.h"
#include "tests/test_run.h"

namespace stepop {
namespace run_checkpoints_test {

/// Gives 1 at step 4, and 0 later; fails at step 8.
Logs test_value_that_fails(const CallbackArguments& arguments) {
  const auto step = std::get<int64_t>(arguments.data_out.attributes().at("global_step"));
  if (step == 8) throw Error("not at step 8");
  return {.scalars = {{"value", step == 4 ? 1 : 0}}};
}
STEPOP_REGISTER_CALLBACK(test_value_that_fails, test_value_that_fails, {"For tests.", {}});

TEST_CASE("the checkpoint of an evaluation whose callback failed is kept, as it may be the best") {
  TestRun run(trainer_config(
      "num_steps: 16\n"
      "eval_hook: {eval_callbacks: {gives: test_value_that_fails}}\n"
      "checkpoints: {keep_last: 1, keep_best: 1, metric: validation/eval_op/gives/value, "
      "mode: max}"));
  run.train();
  CHECK(checkpoint_steps(run.root() + "/train/checkpoints") == std::vector<int64_t>{4, 8, 16});
}

/// NaN, always.
Logs test_no_value(const CallbackArguments&) { return {.scalars = {{"value", std::nan("")}}}; }
STEPOP_REGISTER_CALLBACK(test_no_value, test_no_value, {"For tests.", {}});

TEST_CASE("a metric that is NaN is reported once") {
  TestRun run(
      trainer_config("num_steps: 16\n"
                     "eval_hook: {eval_callbacks: {gives: test_no_value}}\n"
                     "checkpoints: {metric: validation/eval_op/gives/value, mode: max}"));
  const std::string file = run.root() + "/said.txt";
  run.train({}, file);
  const std::string log = read_bytes(file);
  const std::string said =
      "checkpoints/metric: validation/eval_op/gives/value is NaN in step 4, and a checkpoint "
      "without "
      "a number is never the best";
  CHECK(log.find(said) != std::string::npos);
  CHECK(log.find("is NaN in step 8") == std::string::npos);
}

}  // namespace run_checkpoints_test
}  // namespace stepop
