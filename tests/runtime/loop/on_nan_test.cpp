#include <doctest/doctest.h>

#include "runtime/loop/non_finite_record.h"
#include "runtime/optim/non_finite.h"
#include "tests/message_of.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace on_nan_test {

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

const BatchOrder& order_of(TestRun& run) { return run.session.context().splits.order("train"); }

TEST_CASE("stop, the default, ends the run before NaN reaches the weights") {
  TestRun run(diverging("num_steps: 5"));
  const std::string message = message_of([&] { run.train(); });
  CHECK(message.starts_with("optimizer: "));
  CHECK(message.find(" in the loss in step 2: the update was not made") != std::string::npos);
  const State state = run.session.context().tracker.save();
  CHECK(is_finite_model(state));
  CHECK(state.at("optimizer.count").item<int64_t>() == 1);

  const std::string folder = run.root() + "/train/non_finite/2";
  CHECK(message.find("\nthe indices of its examples: " + folder +
                     "/batch.json\nthe state before its update: " + folder +
                     "/model-1.safetensors\n") != std::string::npos);
  const auto record = nlohmann::json::parse(read_bytes(folder + "/batch.json"));
  CHECK(record["step"] == 2);
  CHECK(record["update"] == "optimizer");
  CHECK(record["batches"] == nlohmann::json::array({order_of(run).indices(1)}));
  const Checkpoint saved = load_checkpoint(folder + "/model-1.safetensors");
  CHECK(saved.progress.batch == 1);
  CHECK(is_finite_model(saved.tensors));
}

TEST_CASE("the record names all batches of an accumulated step") {
  TestRun run(diverging("num_steps: 5\naccumulate: 2"));
  message_of([&] { run.train(); });
  const auto record =
      nlohmann::json::parse(read_bytes(run.root() + "/train/non_finite/2/batch.json"));
  CHECK(record["batches"] ==
        nlohmann::json::array({order_of(run).indices(2), order_of(run).indices(3)}));
  CHECK(load_checkpoint(run.root() + "/train/non_finite/2/model-1.safetensors").progress.batch ==
        2);
}

TEST_CASE("a GPU that tells of a step later, in the next epoch, gets the batch of that step") {
  TestRun run(diverging("num_steps: 5"));
  const NonFinite error("optimizer", "the loss or a gradient", std::nullopt, 4);
  Checkpoint now{run.session.context().tracker.save(), {}, ""};
  now.progress.global_step = 7;  // of five steps an epoch
  now.progress.epoch = 1;
  now.progress.batch = 2;
  now.progress.samples_seen = 28;
  const RunDirectory directory = RunDirectory::open(run.root());
  record_non_finite(error, directory, order_of(run), now, 0, 1);
  const auto record =
      nlohmann::json::parse(read_bytes(run.root() + "/train/non_finite/5/batch.json"));
  CHECK(record["epoch"] == 0);
  CHECK(record["batches"] == nlohmann::json::array({order_of(run).indices(4)}));
  const Progress saved =
      load_checkpoint(run.root() + "/train/non_finite/5/model-4.safetensors").progress;
  CHECK(saved.global_step == 4);
  CHECK(saved.epoch == 0);
  CHECK(saved.batch == 4);
  CHECK(saved.samples_seen == 16);
}

TEST_CASE("what is kept of a NaN begins its step with the same random numbers and weights") {
  // Dropout, running statistics, and a NaN in the third step.
  const std::string config = R"(
iterator: TestStateTrainer
networks: {encoder: {class: TestStateEncoder}, head: {class: TestStateHead}}
datasets: {train: {class: Synthetic, size: 31, shape: [1, 3, 3], classes: 3}}
encoder_optimizer: {class: SGD, momentum: 0.9}
head_optimizer: Adam
batch_size: 4
num_steps: 9
ckpt_freq: 1
num_threads: 1
n_data_processes: 0
)";
  TestRun run(config);
  const std::string message = message_of([&] { run.train(); });
  CHECK(message.starts_with("encoder_optimizer: nan in the loss in step 3: "));
  const std::string kept = run.root() + "/train/non_finite/3/model-2.safetensors";
  // Running statistics have seen the batch.
  CHECK(differences(load_checkpoint(kept).tensors, run.checkpoint(2)) ==
        "encoder.norm.num_batches_tracked encoder.norm.running_mean encoder.norm.running_var ");
  const Progress progress = load_checkpoint(kept).progress;
  CHECK(progress.global_step == 2);
  CHECK(progress.batch == 2);
  CHECK(progress.samples_seen == 8);
  // So that the same happens again.
  TestRun again(config, run, load_checkpoint(kept));
  CHECK(message_of([&] { again.train(); }) == message);
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

}  // namespace on_nan_test
}  // namespace stepop
