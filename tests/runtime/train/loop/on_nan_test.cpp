#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>

#include "runtime/train/iterator/splits.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/optim/non_finite.h"
#include "runtime/train/optim/update.h"
#include "tests/message_of.h"
#include "tests/runtime/train/loop/trainer.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace on_nan_test {

/// A learning rate that no network survives: the loss of the second step is not finite.
std::string diverging(const std::string& more) {
  return R"(
iterator: Classifier
device: cpu
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

/// An update that is checked as on a GPU, where NaN is found when it is read; one step has NaN.
class TestLateNan : public Iterator {
 public:
  explicit TestLateNan(const Context& context)
      : Iterator(context),
        model_(context.network<Network>()),
        bad_step_(config().get<int64_t>("bad_step")) {
    auto update =
        std::make_unique<Update>(config().at("optimizer"), context.networks.parameters({"model"}),
                                 context.clock, OnNan::kStop, /*checks_on_device=*/true);
    update_ = update.get();
    context.tracker.add(
        "optimizer", [this] { return update_->state(); },
        [this](const State& state) { update_->load_state(state); });
    context.updates.set("optimizer", std::move(update));
  }

  StepOps step_op(const Batch& batch) override {
    const at::Tensor loss =
        (model_->forward(batch["image"]) * at::rand({1}, batch["image"].options())).square().mean();
    return {.train_op =
                [=, this] {
                  drawn[global_step()] = context().tracker.save("random").at("cpu").clone();
                  const double nan = std::numeric_limits<double>::quiet_NaN();
                  update_->step(global_step() == bad_step_ ? loss * nan : loss);
                },
            .log_op = [] { return Logs{}; }};
  }

  /// The generator's state in the last train op of each step.
  static std::map<int64_t, at::Tensor> drawn;

 private:
  std::shared_ptr<Network> model_;
  Update* update_ = nullptr;
  int64_t bad_step_;
};
std::map<int64_t, at::Tensor> TestLateNan::drawn;
STEPOP_REGISTER_ITERATOR(TestLateNan, {"For tests.", {{"bad_step", "", ""}}});

TEST_CASE(
    "a NaN that a GPU reports some steps later is recorded with the batches and the random "
    "state of its own step") {
  // Epochs of 5 batches are 3 steps, the last one of a single batch.
  for (const int64_t bad_step : {2, 3, 5, 6}) {
    CAPTURE(bad_step);
    const std::string config = R"(
iterator: TestLateNan
device: cpu
model: {class: MLP, inputs: 9, hidden: [], classes: 3}
datasets: {train: {class: Synthetic, size: 20, shape: [1, 3, 3], classes: 3}}
optimizer: {class: SGD, lr: 0.1}
batch_size: 4
accumulate: 2
log_freq: 7
start_log_freq: 7
max_batches_per_epoch: 5
n_data_processes: 0
num_steps: 9
bad_step: )" + std::to_string(bad_step);
    TestRun run(config);
    const std::string step = std::to_string(bad_step + 1);
    // The checkpoint of an epoch's end reads it as well.
    CHECK(message_of([&] { run.train(); }).find("in step " + step + ":") != std::string::npos);
    const std::string folder = run.root() + "/train/non_finite/" + step;
    const auto record = nlohmann::json::parse(read_bytes(folder + "/batch.json"));
    const int64_t epoch = bad_step / 3;
    const int64_t first = bad_step % 3 * 2;
    auto batches = nlohmann::json::array();
    for (int64_t batch = first; batch < std::min<int64_t>(first + 2, 5); ++batch) {
      batches.push_back(order_of(run).indices(epoch * 5 + batch));
    }
    CHECK(record["epoch"] == epoch);
    CHECK(record["batches"] == batches);
    const Checkpoint saved =
        load_checkpoint(folder + "/model-" + std::to_string(bad_step) + ".safetensors");
    CHECK(saved.progress.global_step == bad_step);
    CHECK(saved.progress.epoch == epoch);
    CHECK(saved.progress.batch == first);
    CHECK(saved.progress.samples_seen == epoch * 20 + first * 4);
    // From there the step draws the same numbers again.
    const at::Tensor expected = TestLateNan::drawn.at(bad_step);
    TestRun again(config, run, saved);
    message_of([&] { again.train(); });
    CHECK(TestLateNan::drawn.at(bad_step).equal(expected));
  }
}

/// The first update makes all weights infinite, from a finite loss and finite gradients.
std::string overflowing(const std::string& more) {
  std::string config = diverging(more);
  const std::string lr = "lr: 1e38";
  config.replace(config.find(lr), lr.size(), "lr: 3e38, weight_decay: 1e30");
  return config;
}

TEST_CASE("weights that an update made infinite are not saved") {
  TestRun run(overflowing("num_steps: 1"));
  const std::string message = message_of([&] { run.train(); });
  CHECK(message.starts_with("inf in the weights model.") != message.starts_with("-inf in the "));
  CHECK(message.find(" after step 1, though every loss and gradient was finite: they are not "
                     "saved") != std::string::npos);
  CHECK(message.find("\nnothing was saved yet; start again with a key changed") !=
        std::string::npos);
  CHECK(checkpoint_steps(run.root() + "/train/checkpoints").empty());
  TestRun careless(overflowing("num_steps: 1\non_nan: ignore"));
  careless.train();
  CHECK(checkpoint_steps(careless.root() + "/train/checkpoints") == std::vector<int64_t>{1});
}

/// Its buffers become NaN or infinite in the second step, and its loss stays finite.
class TestBrokenBuffers : public Network {
 public:
  explicit TestBrokenBuffers(const Config& params)
      : layer_(register_module("layer", torch::nn::Linear(9, 3))),
        name_(params.get<std::string>("buffer")),
        value_(params.get<double>("value")),
        buffer_(register_buffer(name_, at::zeros({2}))) {
    register_buffer("mask", at::full({2}, -std::numeric_limits<double>::infinity()));
  }
  at::Tensor forward(const at::Tensor& x) override {
    if (is_training() && ++calls_ == 2) buffer_[1].fill_(value_);
    return layer_->forward(x.flatten(1));
  }

 private:
  torch::nn::Linear layer_;
  std::string name_;
  double value_;
  at::Tensor buffer_;
  int64_t calls_ = 0;
};
STEPOP_REGISTER_MODEL(TestBrokenBuffers, {"For tests.", {{"buffer", "", ""}, {"value", "", ""}}});

TEST_CASE("a buffer that becomes NaN is not saved, nor are infinite running statistics") {
  const auto said = [](const std::string& buffer, const std::string& more) {
    std::string config = diverging("num_steps: 3\nckpt_freq: 1\n" + more);
    config.replace(config.find("lr: 1e38"), 8, "lr: 1e-3");
    const std::string model = "{class: MLP, inputs: 9, hidden: [5], classes: 3}";
    config.replace(config.find(model), model.size(), "{class: TestBrokenBuffers, " + buffer + "}");
    TestRun run(config);
    const std::string message = message_of([&] { run.train(); });
    return std::pair(message.substr(0, message.find(", though")), run.checkpoints());
  };
  using Steps = std::vector<int64_t>;
  CHECK(said("buffer: running_var, value: .nan", "") ==
        std::pair<std::string, Steps>("nan in the buffers model.running_var after step 2", {1}));
  CHECK(said("buffer: running_mean, value: .inf", "ema: {decay: 0.5}") ==
        std::pair<std::string, Steps>(
            "inf in the buffers model.running_mean, ema_model.running_mean after step 2", {1}));
  CHECK(said("buffer: codes, value: .nan", "").first ==
        "nan in the buffers model.codes after step 2");
  // A mask may be written late.
  CHECK(said("buffer: codes, value: .inf", "") ==
        std::pair<std::string, Steps>("no error", {1, 2, 3}));
  CHECK(said("buffer: running_var, value: .nan", "on_nan: ignore").second == Steps{1, 2, 3});
}

TEST_CASE("a NaN after infinite weights is recorded without them") {
  TestRun run(overflowing("num_steps: 5\nckpt_freq: 3"));
  const std::string message = message_of([&] { run.train(); });
  CHECK(message.find("in the loss in step 2") != std::string::npos);
  CHECK(message.find("\nthe cause is older: ") != std::string::npos);
  CHECK(std::filesystem::exists(run.root() + "/train/non_finite/2/batch.json"));
  CHECK_FALSE(std::filesystem::exists(run.root() + "/train/non_finite/2/model-1.safetensors"));
}

TEST_CASE("a learning rate that a schedule makes infinite stops before its update") {
  std::string config = diverging("num_steps: 5");
  const std::string lr = "lr: 1e38";
  config.replace(config.find(lr), lr.size(),
                 "lr: {class: step, from: 1e-3, factor: 1e308, at: [2, 3]}");
  TestRun run(config);
  CHECK(message_of([&] {
          run.train();
        }).starts_with("optimizer: inf in the learning rate in step 3: the update was not made"));
  for (const char* rate : {"lr: .inf", "lr: 1e39", "weight_decay: .inf"}) {
    std::string refused = diverging("num_steps: 5");
    refused.replace(refused.find(lr), lr.size(), rate);
    CHECK(message_of([&] { TestRun never(refused); }).find("expected a finite number, found ") !=
          std::string::npos);
  }
}

TEST_CASE("a NaN before the first checkpoint does not promise one") {
  TestRun early(diverging("num_steps: 5"));
  CHECK(message_of([&] { early.train(); })
            .find("\nnothing was saved yet; start again with a key changed, or it ends the same "
                  "way:  ") != std::string::npos);
  TestRun late(diverging("num_steps: 5\nckpt_freq: 1"));
  CHECK(
      message_of([&] {
        late.train();
      }).find("\nresume from its last checkpoint with a key changed, or it ends the same way:  ") !=
      std::string::npos);
}

TEST_CASE("what is kept of a NaN begins its step with the same random numbers and weights") {
  // Dropout, running statistics, and a NaN in the third step.
  const std::string config = R"(
iterator: TestStateTrainer
device: cpu
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

/// Infinite numbers in the example `bad`.
class TestInfinite : public Dataset {
 public:
  explicit TestInfinite(const Config& params) : bad_(params.get<int64_t>("bad")) {}
  int64_t size() const override { return 8; }
  Example get(int64_t index, Random& /*random*/) const override {
    at::Tensor image = at::zeros({1, 3, 3});
    if (index == bad_) image.fill_(std::numeric_limits<float>::infinity());
    return {.tensors = {{"image", image}, {"class", at::scalar_tensor(index % 3, at::kLong)}},
            .texts = {}};
  }

 private:
  int64_t bad_;
};
STEPOP_REGISTER_DATASET(TestInfinite, {"For tests.", {{"bad", "", "an example"}}});

TEST_CASE("skip names the data that an update was left out for, also with accumulated batches") {
  for (const char* more : {"", "\naccumulate: 2"}) {
    std::string config = diverging(std::string("num_steps: 2\non_nan: skip") + more);
    const std::string usual = "{class: Synthetic, size: 20, shape: [1, 3, 3], classes: 3}";
    config.replace(config.find(usual), usual.size(), "{class: TestInfinite, bad: 3}");
    config.replace(config.find("lr: 1e38"), 8, "lr: 0.01");
    const ScratchFolder folder;
    TestRun run(config);
    Console console(LogLevel::kWarning);
    console.open_log_file(folder / "log.txt");
    const auto folder_of_run = RunDirectory::at(run.root());
    Reporter reporter(console, folder_of_run, run.session.settings(), 2);
    TrainingLoop loop(run.session, folder_of_run, reporter,
                      {.time = "2026-11-21T10-00-00", .git = "none"});
    run.session.initialize();
    loop.run();
    const std::string log = read_bytes(folder / "log.txt");
    CAPTURE(log);
    CHECK(log.find("datasets/train: image of example 3 has infinity\noptimizer: ") !=
          std::string::npos);
  }
}

TEST_CASE("an update that is left out leaves no NaN in running statistics") {
  for (const char* more : {"", "accumulate: 2\n"}) {
    CAPTURE(more);
    std::string config = trainer_config(std::string("num_steps: 4\non_nan: skip\n") + more);
    const std::string usual = "{class: Synthetic, size: 29, shape: [1, 3, 3], classes: 3}";
    config.replace(config.find(usual), usual.size(), "{class: TestInfinite, bad: 3}");
    config.replace(config.find("batch_size: 8"), 13, "batch_size: 2");
    TestRun run(config);
    run.train();
    const State state = run.checkpoint(4);
    CHECK(is_finite_model(state));
    CHECK(state.at("optimizer.skipped").item<int64_t>() > 0);
    CHECK_FALSE(state.at("model.norm.running_mean").eq(0).all().item<bool>());
  }
}

TEST_CASE("ignore lets NaN pass") {
  TestRun run(diverging("num_steps: 5\non_nan: ignore"));
  run.train();
  CHECK_FALSE(is_finite_model(run.checkpoint(5)));
  CHECK(run.checkpoint(5).at("optimizer.count").item<int64_t>() == 5);
}

TEST_CASE("another word for on_nan is refused with its place") {
  CHECK(message_of([] { TestRun(diverging("num_steps: 5\non_nan: continue")); }) ==
        "test.yaml:11: on_nan: expected stop, skip or ignore, found \"continue\"");
}

}  // namespace on_nan_test
}  // namespace stepop
