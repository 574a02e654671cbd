// Trainings of exported networks by the real program: against a loop of PyTorch, killed and
// resumed, and in two processes.
#include <ATen/ops/allclose.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/core/formats/safetensors.h"
#include "tests/cli/digits_run.h"
#include "tests/python.h"
#include "tests/same_state.h"

namespace stepop {
namespace cli_exported_test {

constexpr const char* kNets = R"(import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, drop=0.0):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2))
        self.drop = nn.Dropout(drop)
        self.head = nn.Linear(6 * 4 * 4, 3)
    def forward(self, image): return self.head(self.drop(self.features(image).flatten(1)))

class Layers(nn.Module):  # the layout of models/mlp
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(64, 16), nn.Linear(16, 10)])
    def forward(self, image): return self.layers[1](torch.relu(self.layers[0](image.flatten(1))))
)";

/// Steps in the order of the data, each of which is logged.
constexpr const char* kYaml = R"(
iterator: Classifier
model: {class: Exported, path: plain.pt2}
datasets:
  train: {class: Npy, files: {image: images.npy, class: labels.npy}}
  validation: {class: Npy, files: {image: held_out.npy, class: labels.npy}}
samplers: {train: sequential}
init_from: first.pth
batch_size: 4
test_batch_size: 80
num_steps: 20
log_freq: 1
optimizer: {class: Adam, lr: 1e-2}
ema: {decay: 0.9}
eval_weights: ema
num_threads: 1
n_data_processes: 0
)";

/// The networks as files, and what the loop of PyTorch computes with them; once for all tests.
const ScratchFolder& files() {
  static const ScratchFolder folder;
  static const bool done = [] {
    folder.write("net.py", kNets);
    folder.write("a.yaml", kYaml);
    const std::string line =
        "export PYTHONPATH='" STEPOP_SOURCE_DIR "/eval_out/python'; '" STEPOP_SOURCE_DIR
        "/.venv/bin/python3' -B -m stepop.eval.export net.py:";
    for (const char* words : {"Net --example image=4,1,8,8 -o plain.pt2",
                              "Net --kwargs '{\"drop\": 0.5}' --example image=4,1,8,8 -o drops.pt2",
                              "Layers --example image=4,1,8,8 -o layers.pt2"}) {
      run_well(folder, line + words);
    }
    run_python("import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0])",
               {STEPOP_SOURCE_DIR "/tests/cli/exported_training.py", folder.path()});
    return true;
  }();
  return done ? folder : folder;
}

/// A folder that a training may fill, with the files in it.
struct Folder : ScratchFolder {
  Folder() { std::filesystem::copy(files().path(), path()); }
};

std::vector<nlohmann::json> metrics_of(const ScratchFolder& folder) {
  std::vector<nlohmann::json> rows;
  for (const auto& line :
       lines_of(read_bytes(folder.path(only_run(folder)) + "/train/metrics.jsonl"))) {
    rows.push_back(nlohmann::json::parse(line));
  }
  return rows;
}

std::vector<double> values_of(const ScratchFolder& folder, const std::string& key) {
  std::vector<double> values;
  for (const auto& row : metrics_of(folder)) {
    if (row.contains(key)) values.push_back(row.at(key).get<double>());
  }
  return values;
}

/// Trains, and compares losses, weights, buffers and averages with those of PyTorch.
void check_like_python(const std::string& name, const std::string& more, double tolerance) {
  CAPTURE(name);
  CAPTURE(more);
  const Folder folder;
  run_well(folder, "stepop -n a -b a.yaml -t " + more);
  const auto facts = nlohmann::json::parse(read_bytes(folder.path(name + ".json")));
  const auto expected = facts.at("losses").get<std::vector<double>>();
  const auto losses = values_of(folder, "train/log_op/loss");
  REQUIRE(losses.size() == expected.size());
  for (size_t i = 0; i < losses.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(losses[i] - expected[i]) <= tolerance);
  }
  const auto evaluations = values_of(folder, "validation/eval_op/loss");
  REQUIRE(evaluations.size() == 1);
  CHECK(std::abs(evaluations[0] - facts.at("evaluation").get<double>()) <= tolerance);

  const State state = state_after(folder, 20);
  size_t compared = 0;
  for (const auto& [key, tensor] : load_safetensors(folder.path(name + ".safetensors")).tensors) {
    CAPTURE(key);
    const bool is_average = key.starts_with("ema_");
    const auto found = state.find(is_average ? "ema_model." + key.substr(4) : "model." + key);
    REQUIRE(found != state.end());
    CHECK(at::allclose(found->second, tensor, tolerance, tolerance));
    ++compared;
  }
  CHECK(compared == 5 + 3 + 5);  // parameters, buffers of batch normalization, averages
}

TEST_CASE("20 steps of an exported network have the losses and weights of PyTorch's own loop") {
  check_like_python("float32", "", 1e-4);
}

TEST_CASE("an exported network in channels_last has the losses of PyTorch's own loop") {
  check_like_python("float32", "--channels_last true", 1e-4);
}

TEST_CASE(
    "averages by swa keep the training's statistics of a network from Python, which is said") {
  const Folder folder;
  const auto result = run_in(folder, "stepop -n a -b a.yaml -t --swa '{from: 5, every: 5}'");
  CHECK(result.exit_code == 0);
  CHECK(result.err.find("swa: the batch normalization of model is part of a file of Python: its "
                        "statistics are those of the training, and are not measured for the "
                        "averages") != std::string::npos);
}

TEST_CASE("an exported network in bfloat16 has the losses of PyTorch's autocast") {
  check_like_python("bfloat16", "--precision bfloat16", 1e-3);
}

TEST_CASE("a part of an exported network is frozen by its name in Python") {
  check_like_python("frozen", "--freeze '[{match: \"^model\\\\.features\\\\.0\\\\.\"}]'", 1e-4);
}

TEST_CASE("killed twice and resumed, a training of an exported network ends with the same bits") {
  const std::string train =
      "'" STEPOP_BINARY_DIR
      "/stepop' -n a -b a.yaml -t --model/path drops.pt2 --samplers/train shuffle "
      "--num_steps 300 --log_freq 20 --ckpt_freq 5 ";
  const Folder whole;
  run_well(whole, train);
  const Folder folder;
  const auto kill_at = [&](int step, const std::string& start) {
    return fmt::format(
        "{} & pid=$!; until_ok 'ls {}/logs/*/train/checkpoints/model-{}.safetensors'; kill -9 "
        "$pid; wait $pid; [ $? = 137 ] || exit 8; ",
        start, folder.path(), step);
  };
  const CommandResult result =
      run_in(folder, "export OMP_NUM_THREADS=1; " + std::string(kUntil) + kill_at(30, train) +
                         kill_at(100, "'" STEPOP_BINARY_DIR "/stepop' -p logs/* -t") +
                         "stepop -p logs/* -t");
  CAPTURE(result.err);
  CHECK(result.exit_code == 0);
  CHECK(differences(state_after(folder, 300), state_after(whole, 300)) == "");
}

TEST_CASE("an exported network has the weights of the same in C++, also in two processes") {
  const std::string in_cpp = "{class: MLP, inputs: 64, hidden: [16]}";
  const std::string exported = "{class: Exported, path: layers.pt2}";
  for (const int processes : {1, 2}) {
    CAPTURE(processes);
    const auto train = [&](const ScratchFolder& folder, const std::string& model) {
      run_well(folder, fmt::format("stepop -n a -b a.yaml -t --model '{}' --init_from layers.pth "
                                   "--processes {}",
                                   model, processes));
    };
    const Folder ours, theirs;
    train(ours, exported);
    train(theirs, in_cpp);
    // A network in C++ draws its first weights.
    CHECK(differences(state_after(ours, 20), state_after(theirs, 20)) == "random.cpu ");
    CHECK(values_of(ours, "train/log_op/loss") == values_of(theirs, "train/log_op/loss"));
  }
}

TEST_CASE("two processes keep running statistics of networks from Python, and resume") {
  for (const std::string model :
       {"{class: Exported, path: plain.pt2}", "{class: TorchScript, path: plain.pt}"}) {
    CAPTURE(model);
    const std::string train = "stepop -n a -b a.yaml -t --processes 2 --model '" + model + "' ";
    const Folder whole, parts;
    run_well(whole, train);
    run_well(parts, train + "--stop_at 7");
    run_well(parts, "stepop -p logs/* -t --stop_at null");
    CHECK(differences(state_after(parts, 20), state_after(whole, 20)) == "");
  }
}

TEST_CASE("synchronised batch normalization of an exported network has the batch of all") {
  check_like_python("float32", "--processes 2 --distributed/sync_batch_norm true", 1e-4);
}

}  // namespace cli_exported_test
}  // namespace stepop
