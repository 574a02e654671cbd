// Trainings on a device that is not the host: the same bits as on the CPU.
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <string>
#include <thread>

#include "runtime/train/networks/averages.h"
#include "runtime/train/networks/networks.h"
#include "tests/accelerator/accelerator.h"
#include "tests/accelerator/lenet_config.h"
#include "tests/accelerator/same_training.h"
#include "tests/iterators/trainer/flow_config.h"
#include "tests/message_of.h"
#include "tests/runtime/train/loop/trainer.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop::accelerator {
namespace training_test {

// It must be the first case: LibTorch chooses for the whole process.
TEST_CASE("a backward pass of the CPU before the first one on the device is in nobody's way") {
  const at::Tensor one = at::ones({1}).requires_grad_();
  (one * one).sum().backward();
  TestRun here(lenet_config(kName, "checkpoint_modules: '.'"));
  here.train();
  CHECK(here.session.position().global_step == 12);
}

TEST_CASE("a training has the bits of one on the CPU, its logs and its evaluations too") {
  for (const char* more : {"",
                           "ema: {decay: 0.9}\naccumulate: 2",
                           "ema: {decay: 0.9, on_cpu: true}\neval_weights: ema",
                           "swa: {from: 1e}",
                           "checkpoint_modules: '.'",
                           "channels_last: true",
                           "n_data_processes: 2\nn_prefetch: 3",
                           "metrics: {f1: F1, top2: {class: TopK, k: 2}}",
                           "optimizer: {class: SGD, lr: 0.1, momentum: 0.9, clip_norm: 0.1}",
                           "optimizer: {class: AdamW, lr: 0.01, weight_decay: 0.1}\non_nan: skip",
                           "optimizer: {class: RMSprop, lr: 0.01}",
                           "optimizer: {class: NAdam, lr: 0.01}",
                           "optimizer: {class: RAdam, lr: 0.01}",
                           "optimizer: {class: Adamax, lr: 0.01}",
                           "optimizer: {class: Adadelta, lr: 1}",
                           "optimizer: {class: Lion, lr: 0.001}",
                           "optimizer: {class: LAMB, lr: 0.01}",
                           "optimizer: {class: LARS, lr: 0.1}",
                           "optimizer: {class: Muon, lr: 0.01}",
                           "optimizer: {class: Adafactor, lr: 0.01}",
                           "optimizer: {class: ScheduleFreeAdamW, lr: 0.01}",
                           "telemetry: {weights: 1e, gradients: 3}"}) {
    CAPTURE(std::string(more));
    TestRun here(lenet_config(kName, more));
    TestRun there(lenet_config("cpu", more));
    here.train();
    there.train();
    CHECK(different(here, there) == "");
    CHECK(first_difference(logged(here), logged(there)) == "");
  }
}

int64_t bytes_of_weights(const TestRun& run) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : run.checkpoint(run.checkpoints().back())) {
    if (name.starts_with("model.")) bytes += static_cast<int64_t>(tensor.nbytes());
  }
  return bytes;
}

/// That both trainings on the device end alike, and that the second leaves so many times the bytes
/// of the weights free.
void check_frees(const std::string& usual, const std::string& on_host, int64_t times) {
  CAPTURE(on_host);
  const int64_t before = bytes();
  TestRun one(usual);
  one.train();
  const int64_t of_one = bytes() - before;
  TestRun other(on_host);
  other.train();
  const int64_t of_other = bytes() - before - of_one;
  CHECK(of_one - of_other >= times * bytes_of_weights(one));
  CHECK(different(one, other) == "");
  CHECK(first_difference(logged(one), logged(other)) == "");
}

TEST_CASE(
    "an optimizer's state in the host's memory takes none of the device, and changes no bit") {
  const auto check = [](const std::string& optimizer, int64_t times, const std::string& more = "") {
    const auto of = [&](const char* where) {
      return lenet_config(
          kName, fmt::format("optimizer: {{class: {}, lr: 0.01{}}}\n{}", optimizer, where, more));
    };
    check_frees(of(""), of(", state_on_cpu: true"), times);
  };
  check("SGD, momentum: 0.9", 1);
  check("ASGD", 1);
  check("Muon", 1);
  check("NAdam, groups: [{match: bias, lr: 0.1}]", 2);
  check("Adam, clear_state_at: [5]", 2);
  for (const char* more : {"", "accumulate: 2", "precision: float16", "on_nan: skip",
                           "freeze: [{match: conv1, until: 6}]", "cuda_graph: true"}) {
    check("Adam", 2, more);
  }
}

TEST_CASE("averages on the CPU take memory of the device only while they are evaluated") {
  const int64_t before = bytes();
  TestRun without(lenet_config(kName));
  without.train();
  const int64_t of_one = bytes() - before;
  TestRun run(lenet_config(kName, "ema: {decay: 0.9, on_cpu: true}\neval_weights: ema"));
  run.train();
  CHECK(bytes() - before - of_one == of_one);
  const Networks& networks = run.session.context().networks;
  {
    const AveragesGuard guard = networks.evaluation_weights();
    const int64_t most = of_one + bytes_of_weights(run) + 4096;  // rounded up
    CHECK(bytes() - before - of_one > of_one);
    CHECK(bytes() - before - of_one <= most);
    const AveragesGuard same = networks.evaluation_weights();
    CHECK(bytes() - before - of_one <= most);
  }
  CHECK(bytes() - before - of_one == of_one);
}

TEST_CASE("keep_optimizer_states_on_cpu holds for every step of ExtensibleTrainer") {
  const std::string usual = R"(
iterator: ExtensibleTrainer
networks: {model: {class: MLP, inputs: 144, hidden: [8], classes: 3}}
steps:
  s:
    training: model
    optimizer_params: {lr: 0.01}
    injectors: {call: {type: generator, generator: model, in: image, out: made}}
    losses: {l: {type: direct, key: made, weight: 1}}
datasets: {train: {class: Synthetic, size: 29, shape: [1, 12, 12], classes: 3}}
batch_size: 8
num_epochs: 1
num_threads: 1
device: hpu
)";
  check_frees(usual, usual + "keep_optimizer_states_on_cpu: true", 2);
}

TEST_CASE("a resume reads the host's state, and a run may change where it is") {
  const char* usual = "optimizer: {class: Adam, lr: 0.01}\nema: {decay: 0.9}\nckpt_freq: 5";
  const char* on_host =
      "optimizer: {class: Adam, lr: 0.01, state_on_cpu: true}\nema: {decay: 0.9, on_cpu: "
      "true}\nckpt_freq: 5";
  TestRun whole(lenet_config(kName, on_host));
  whole.train();
  TestRun first(lenet_config(kName, std::string(on_host) + "\nnum_steps: 5"));
  first.train();
  TestRun rest(lenet_config(kName, on_host), first, 5);
  rest.train();
  CHECK(different(whole, rest) == "");
  TestRun elsewhere(lenet_config("cpu", usual), first, 5);
  elsewhere.train();
  TestRun on_device(lenet_config(kName, usual), first, 5);
  on_device.train();
  CHECK(different(elsewhere, on_device) == "");
  TestRun back(lenet_config(kName, on_host), elsewhere, 10);
  back.train();
  TestRun back_here(lenet_config("cpu", on_host), elsewhere, 10);
  back_here.train();
  CHECK(different(back, back_here) == "");
}

TEST_CASE("half precision trains as on the CPU to what it rounds, with scaled losses too") {
  for (const char* precision : {"bfloat16", "float16"}) {
    const auto loss = [&](const char* device) {
      TestRun run(lenet_config(device, fmt::format("precision: {}", precision)));
      run.train();
      return run.metrics().back()["validation/eval_op/loss"].get<double>();
    };
    CHECK(loss(kName) == doctest::Approx(loss("cpu")).epsilon(0.02));
  }
}

/// Gives the workers the time to have a batch ready when the next step asks for one.
class Patience : public Hook {
 public:
  void after_step(int64_t) override { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }
};

TEST_CASE("copies that run late change no bit") {
  // With a time limit the worker prepares quick batches as well.
  const char* more = "ckpt_freq: 2\nn_data_processes: 1\ndata_timeout: 60s";
  TestRun there(lenet_config("cpu", more));
  there.train();
  set_copy_delay(3'000);
  take_copies_behind();
  TestRun here(lenet_config(kName, more));
  Patience patience;
  here.train({&patience});
  set_copy_delay(0);
  CHECK(take_copies_behind() > 24);  // images and classes of each batch
  CHECK(take_copies_beside() > 0);   // of batches that a worker had ready
  CHECK(different(here, there) == "");
  CHECK(first_difference(logged(here), logged(there)) == "");
}

struct RefusedStreams {
  RefusedStreams() { refuse_streams(true); }
  ~RefusedStreams() { refuse_streams(false); }
};

TEST_CASE("without memory for a stream of their own, batches are copied when they are used") {
  const char* more = "n_data_processes: 1\ndata_timeout: 60s";
  TestRun there(lenet_config("cpu", more));
  there.train();
  take_copies_beside();
  TestRun here(lenet_config(kName, more));
  {
    const RefusedStreams refused;
    Patience patience;
    here.train({&patience});
  }
  CHECK(take_copies_beside() == 0);
  CHECK(different(here, there) == "");
}

TEST_CASE(
    "a resume has the bits of a training that was never stopped, random numbers of the device "
    "among them") {
  const std::string config = trainer_config("num_epochs: 3\nckpt_freq: 5\ndevice: hpu");
  TestRun whole(config);
  whole.train();
  const int64_t last = whole.checkpoints().back();
  TestRun resumed(config, whole, 5);
  resumed.train();
  CHECK(differences(whole.checkpoint(last), resumed.checkpoint(last)) == "");
}

TEST_CASE("a training leaves none of the device's memory behind") {
  const int64_t before = bytes();
  TestRun(lenet_config(kName)).train();
  CHECK(bytes() == before);
}

TEST_CASE("the checks before a training run on the device") {
  TestRun run(lenet_config(kName, ""));
  run.session.check();
  run.train();
  CHECK(run.session.position().global_step == 12);
}

TEST_CASE("classes out of range are found on the device before a run, as on the CPU") {
  std::string config = lenet_config(kName);
  config.replace(config.find("classes: 3}\ndatasets"), 10, "classes: 2");
  const auto said = [](const std::string& of) {
    return message_of([&] { TestRun(of).session.check(); });
  };
  const std::string here = said(config);
  CHECK(here.find("the network has 2 outputs, classes 0 to 1") != std::string::npos);
  config.replace(config.find("device: hpu"), 11, "device: cpu");
  CHECK(here == said(config));
  const std::string flow = said(flow_config("  classes: 2\ndevice: hpu\n"));
  CHECK(flow.find(", and `classes` is 2: 0 to 1") != std::string::npos);
}

TEST_CASE("before a batch is divided, what LibTorch keeps of the device's memory is given back") {
  std::string config = lenet_config(kName, "on_out_of_memory: split", 128);
  config.replace(config.find("batch_size: 8"), 13, "batch_size: 64");
  const int64_t before = bytes();
  reset_most_bytes();
  TestRun(config).session.check();
  take_emptied_caches();
  set_byte_limit(before + (most_bytes() - before) * 3 / 4);
  TestRun run(config);
  run.session.check();
  run.train();
  set_byte_limit(0);
  CHECK(take_emptied_caches() > 0);
}

}  // namespace training_test
}  // namespace stepop::accelerator
