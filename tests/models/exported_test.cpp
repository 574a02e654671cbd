// Networks of torch.export against the same in PyTorch: results, gradients, and buffers.
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/inotify.h>
#include <torch/nn/module.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "runtime/core/formats/safetensors.h"
#include "runtime/core/measure/tensor_memory.h"
#include "runtime/train/checkpoint/tracker.h"
#include "runtime/train/networks/checkpoint_modules.h"
#include "runtime/train/networks/generators.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/networks/networks.h"
#include "tests/message_of.h"
#include "tests/models/exported_nets.h"
#include "tests/places.h"
#include "tests/python.h"
#include "tests/same_state.h"
#include "tests/test_run.h"

namespace stepop {
namespace exported_test {

TEST_CASE("an exported network computes what it computes in PyTorch, in both modes") {
  for (const char* name : {"unet", "tied", "recurrent", "two", "drops", "blocks"}) {
    CAPTURE(name);
    check_network(exported_nets().path(name));
  }
}

// A hook of PyTorch sees what a layer gives, also where the next one changes it in place.
TEST_CASE("an exported network ends at a layer with what a hook sees there, in both modes") {
  for (const char* layer : {"first", "middle", "middle.0", "middle.1"}) {
    CAPTURE(layer);
    check_network(exported_nets().path("hidden"), "", 1e-5, 1e-6, 1e-5, layer);
  }
  const auto net = exported(exported_nets().path("hidden"));
  const std::string message =
      message_of([&] { dynamic_cast<NetworkLayers&>(*net).end_at("middel"); });
  CHECK(message.find("hidden.pt2 calls no layer \"middel\"; there are: first, first.0, first.1, "
                     "first.2, down, middle") != std::string::npos);
}

TEST_CASE("networks in STEPOP_ZOO compute what they compute in PyTorch") {
  const char* folder = std::getenv("STEPOP_ZOO");
  if (folder == nullptr) return;  // exported_zoo.py makes networks of their real size
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".pt2") continue;
    const std::string name = entry.path().stem();
    MESSAGE(name);
    check_network(folder + ("/" + name));
  }
}

/// The gradients and buffers after a training step, with the modules that a config names run again.
/// `held` gets the bytes of tensors between the passes.
State step_of_blocks(const std::string& config, std::vector<std::string>* ran, int64_t* held) {
  seed_generators(3, c10::kCPU);
  Tracker tracker;
  const Config whole = test_config("networks: {model: {class: Exported, path: " +
                                   exported_nets().path("blocks.pt2") + "}}\n" + config);
  const Networks networks(whole, c10::kCPU, tracker);
  const auto net = networks.get("model");
  net->train();
  const at::Tensor images = at::randn({4, 4, 32, 32});
  {
    const TensorMemory memory;
    const at::Tensor loss = run_exported(*net, {images})[0].square().sum();
    *held = memory.now(c10::kCPU);
    loss.backward();
  }
  *ran = networks.checkpoint_modules().ran();
  State state = tensors_of(*net);
  for (const auto& parameter : net->named_parameters()) {
    const at::Tensor gradient = parameter.value().grad();
    if (gradient.defined()) state["grad." + parameter.key()] = gradient;
  }
  return state;
}

TEST_CASE("modules of an exported network are run again by their names, with the same bits") {
  std::vector<std::string> ran;
  int64_t held = 0;
  int64_t held_again = 0;
  const State kept = step_of_blocks("", &ran, &held);
  CHECK(ran.empty());
  const State again = step_of_blocks("checkpoint_modules: ['blocks\\.[02]$']", &ran, &held_again);
  CHECK(held_again < held * 3 / 4);
  CHECK(ran == std::vector<std::string>{"model.blocks.0", "model.blocks.2"});
  CHECK(differences(kept, again).empty());
}

TEST_CASE("modules of an exported network compute in float32 by their names") {
  const auto outputs = [](const std::string& config, Precision precision) {
    seed_generators(3, c10::kCPU);
    Tracker tracker;
    const Networks networks(test_config("networks: {model: {class: Exported, path: " +
                                        exported_nets().path("drops.pt2") + "}}\n" + config),
                            c10::kCPU, tracker);
    networks.get("model")->eval();
    const AutocastGuard guard(precision, c10::kCPU);
    return run_exported(*networks.get("model"), {at::randn({4, 1, 3, 3})})[0].to(at::kFloat);
  };
  const at::Tensor whole = outputs("", Precision::kFloat32);
  const at::Tensor half = outputs("", Precision::kBfloat16);
  CHECK_FALSE(at::equal(half, whole));
  CHECK(at::equal(outputs("float32_modules: .\n", Precision::kBfloat16), whole));
  const at::Tensor mixed = outputs("float32_modules: first\n", Precision::kBfloat16);
  CHECK_FALSE(at::equal(mixed, whole));
  CHECK_FALSE(at::equal(mixed, half));
}

TEST_CASE("an exported network trains as the same in C++ to the bit, dropout included") {
  const std::string exported =
      training_of_exported("{class: Exported, path: " + exported_nets().path("drops.pt2") + "}");
  TestRun whole(exported);
  State first;
  for (const auto& [name, tensor] : whole.session.context().tracker.save()) {
    first.emplace(name, tensor.cpu().clone());
  }
  // With its weights and its state of the random numbers.
  const Checkpoint start{first, whole.session.position(), whole.session.config_yaml()};
  whole.train();
  TestRun in_cpp(training_of_exported("{class: TestDropoutNet, inputs: 9}"));
  in_cpp.session.resume(start, "start");
  in_cpp.train();
  TestRun resumed(exported, whole, 3);
  const State expected = whole.checkpoint(9);
  resumed.train();
  CHECK(differences(expected, in_cpp.checkpoint(9)) == "");
  CHECK(differences(expected, resumed.checkpoint(9)) == "");
  CHECK(differences(expected, first).find("model.norm.running_mean") != std::string::npos);
}

TEST_CASE("one value for batch normalization is refused in training, and not in evaluation") {
  std::string yaml =
      training_of_exported("{class: Exported, path: " + exported_nets().path("drops.pt2") + "}");
  yaml.replace(yaml.find("size: 29"), 8, "size: 25");
  TestRun run(yaml);
  CHECK(message_of([&] { run.session.check(); })
            .find("drops.pt2: aten::batch_norm of norm (BatchNorm1d): Expected more than 1 value "
                  "per channel when training, got input size [1, 6]\nthe batch has 1 example") !=
        std::string::npos);
  yaml.replace(yaml.find("size: 25"), 8, "size: 24");
  yaml.replace(yaml.find("size: 10"), 8, "size: 1");
  CHECK(message_of([&] { TestRun(yaml).session.check(); }) == "no error");
}

TEST_CASE("complex parameters are refused before the first step, with what to do instead") {
  TestRun run(
      training_of_exported("{class: Exported, path: " + exported_nets().path("fourier.pt2") + "}"));
  CHECK(message_of([&] { run.session.check(); }) ==
        "complex numbers can be neither trained nor saved: model.w. Keep real ones, "
        "torch::view_as_real (in Python torch.view_as_real), and compute with view_as_complex of "
        "them; a constant need not be a persistent buffer");
}

TEST_CASE("a buffer that moves and that no checkpoint holds is told at the start") {
  const std::string path = exported_nets().path("passing");
  CHECK(dynamic_cast<Network&>(*exported(path)).warning() ==
        path +
            ".pt2: forward changes center, which no checkpoint holds, so that a resume has other "
            "numbers: python -m stepop.eval.export makes it part of the state");
  CHECK(dynamic_cast<Network&>(*exported(exported_nets().path("drops"))).warning() == "");
}

TEST_CASE("an exported network refuses inputs of other sizes than it was exported for") {
  const auto net = exported(exported_nets().path("unet"));
  const std::string message = message_of([&] { run_exported(*net, {at::ones({2, 4, 8, 8})}); });
  CHECK(message.find("it was exported for an input x [*, 3, *, *], and got [2, 4, 8, 8]") !=
        std::string::npos);
}

TEST_CASE("a network is read from its file once, also one of several inputs") {
  std::map<bool, int64_t> networks;  // by whether it is one of several
  for (const auto& entry : std::filesystem::directory_iterator(exported_nets().path())) {
    if (entry.path().extension() != ".pt2") continue;
    const std::string path = (entry.path().parent_path() / entry.path().stem()).string();
    CAPTURE(path);
    const int watch = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    REQUIRE(::inotify_add_watch(watch, entry.path().c_str(), IN_OPEN | IN_CLOSE) >= 0);
    std::shared_ptr<torch::nn::Module> net;
    if (message_of([&] { net = exported(path); }) == "no error") {
      ++networks[dynamic_cast<MultiNetwork*>(net.get()) != nullptr];
      std::array<inotify_event, 8> events{};  // of a file, so without a name
      CHECK(::read(watch, events.data(), sizeof(events)) == 2 * sizeof(inotify_event));
      CHECK(events[0].mask == IN_OPEN);
    }
    ::close(watch);
  }
  CHECK(networks[false] > 0);
  CHECK(networks[true] > 0);
}

TEST_CASE("an iterator of one result is told which results a file has, and what to do") {
  const ScratchFolder folder;
  folder.write("net.py",
               "import torch\nfrom torch import nn\n"
               "class Net(nn.Module):\n"
               "    def __init__(self):\n"
               "        super().__init__()\n"
               "        self.head, self.aux = nn.Linear(4, 10), nn.Linear(4, 3)\n"
               "    def forward(self, image):\n"
               "        return self.head(image), self.aux(image)\n");
  run_python(
      "import os, sys\n"
      "os.chdir(sys.argv[1])\n"
      "sys.path.insert(0, sys.argv[2])\n"
      "from stepop_eval.export import main\n"
      "main(['net.py:Net', '--example', 'image=4,4', '-o', 'net.pt2'])",
      {folder.path(""), STEPOP_SOURCE_DIR "/eval_out/python"});
  const std::string path = folder.path("net.pt2");
  const std::string config = fmt::format(
      "iterator: Classifier\nmodel: {{class: Exported, path: {}}}\nbatch_size: 4\nnum_steps: 1\n"
      "datasets: {{train: {{class: Synthetic, size: 8, shape: [4], classes: 3}}}}\n",
      path);
  CHECK(message_of([&] { Session(test_config(config), true, false, false); }) ==
        "the iterator takes the network \"model\" as a stepop::Network, which the model of the "
        "config is not: " +
            path +
            " has 2 results, linear [*, 10], linear_1 [*, 3]: export a module whose forward "
            "returns one of them, or write an iterator that takes "
            "context.network<stepop::MultiNetwork>()");
}

TEST_CASE("a file that is no program of torch.export is refused") {
  const ScratchFolder folder;
  const std::string path = exported_nets().path("unet.safetensors");
  CHECK(message_of([&] {
          models().build(test_config("model: {class: Exported, path: " + path + "}"), "model");
        }).find(path) != std::string::npos);
}

}  // namespace exported_test
}  // namespace stepop
