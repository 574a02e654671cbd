#include <doctest/doctest.h>

#include "runtime/optim/non_finite.h"
#include "tests/message_of.h"
#include "tests/test_run.h"

namespace stepop {
namespace {

/// A learning rate that no network survives: the loss of the second step is not finite.
std::string diverging(const std::string& more) {
  return R"(
iterator: Classifier
model: {class: MLP, inputs: 9, hidden: [5], classes: 3}
datasets: {train: {class: Synthetic, size: 20, shape: [1, 3, 3], classes: 3}}
optimizer: {class: SGD, lr: 1e38}
batch_size: 4
log_freq: 1
n_data_processes: 0
)" + more;
}

bool is_finite_model(const State& state) {
  for (const auto& [name, tensor] : state) {
    const bool is_finite = !name.starts_with("model.") || tensor.isfinite().all().item<bool>();
    if (!is_finite) return false;
  }
  return true;
}

TEST_CASE("stop, the default, ends the run before NaN reaches the weights") {
  TestRun run(diverging("num_steps: 5"));
  const std::string message = message_of([&] { run.train(); });
  CHECK(message.starts_with("optimizer: "));
  CHECK(message.find(" in the loss in step 2: the update was not made") != std::string::npos);
  const State state = run.session.context().tracker.save();
  CHECK(is_finite_model(state));
  CHECK(state.at("optimizer.count").item<int64_t>() == 1);
  CHECK_THROWS_AS(TestRun(diverging("num_steps: 5")).train(), NonFinite);
}

TEST_CASE("skip goes on without such updates, and a resumed run keeps their count") {
  TestRun run(diverging("num_steps: 3\non_nan: skip"));
  run.train();
  CHECK(is_finite_model(run.checkpoint(3)));
  CHECK(run.checkpoint(3).at("optimizer.count").item<int64_t>() == 1);
  CHECK(run.checkpoint(3).at("optimizer.skipped").item<int64_t>() == 2);
  TestRun resumed(diverging("num_steps: 5\non_nan: skip"), run, 3);
  resumed.train();
  CHECK(resumed.checkpoint(5).at("optimizer.skipped").item<int64_t>() == 4);
}

TEST_CASE("ignore lets NaN pass") {
  TestRun run(diverging("num_steps: 5\non_nan: ignore"));
  run.train();
  CHECK_FALSE(is_finite_model(run.checkpoint(5)));
  CHECK(run.checkpoint(5).at("optimizer.count").item<int64_t>() == 5);
}

TEST_CASE("another word for on_nan is refused with its place") {
  CHECK(message_of([] { TestRun(diverging("num_steps: 5\non_nan: continue")); }) ==
        "test.yaml:10: on_nan: expected stop, skip or ignore, found \"continue\"");
}

}  // namespace
}  // namespace stepop
