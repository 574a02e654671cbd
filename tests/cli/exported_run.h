// Networks of Python as files, the data of a training, and what the loop of PyTorch computes.
#pragma once

#include <ATen/ops/allclose.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/core/formats/safetensors.h"
#include "tests/cli/digits_run.h"
#include "tests/python.h"
#include "tests/same_state.h"

namespace stepop::exported_run {

inline constexpr const char* kNets = R"(import torch
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

class Dropped(nn.Module):  # channels, attention and features are dropped
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.Dropout2d(0.3), nn.ReLU())
        self.attend = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.2, batch_first=True)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(8, 3)
    def forward(self, image):
        return self.head(self.drop(self.attend(self.conv(image).flatten(2).transpose(1, 2)).mean(1)))
)";

/// Steps in the order of the data, each of which is logged.
inline constexpr const char* kYaml = R"(
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
inline const ScratchFolder& files() {
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

inline std::vector<nlohmann::json> metrics_of(const ScratchFolder& folder) {
  std::vector<nlohmann::json> rows;
  for (const auto& line :
       lines_of(read_bytes(folder.path(only_run(folder)) + "/train/metrics.jsonl"))) {
    rows.push_back(nlohmann::json::parse(line));
  }
  return rows;
}

inline std::vector<double> values_of(const ScratchFolder& folder, const std::string& key) {
  std::vector<double> values;
  for (const auto& row : metrics_of(folder)) {
    if (row.contains(key)) values.push_back(row.at(key).get<double>());
  }
  return values;
}

/// Compares the losses, weights, buffers and averages of the only run in a folder with those of
/// PyTorch's loop NAME.
inline void check_values_like_python(const std::string& name, const ScratchFolder& folder,
                                     double tolerance) {
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

/// Trains in a copy of the files, and compares.
inline void check_like_python(const std::string& name, const std::string& more, double tolerance,
                              const ScratchFolder& from = files()) {
  CAPTURE(name);
  CAPTURE(more);
  const ScratchFolder folder;
  std::filesystem::copy(from.path(), folder.path());
  run_well(folder, "stepop -n a -b a.yaml -t " + more);
  check_values_like_python(name, folder, tolerance);
}

/// Trains dropped.pt2 of `folder` with `more`, of which PyTorch's own loop goes on from the first
/// step, and compares.
inline void check_dropout_like_python(const std::string& more, const ScratchFolder& folder) {
  CAPTURE(more);
  const std::string line =
      "stepop -n a -b a.yaml -t --model/path dropped.pt2 --init_from null --ema null "
      "--eval_weights null --optimizer '{class: SGD, lr: 0.1}' --num_steps 21 --stop_at 1 ";
  run_well(folder, line + more);
  run_well(folder, "stepop -p logs/* -t --stop_at null");
  run_python("import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0])",
             {STEPOP_SOURCE_DIR "/tests/cli/exported_dropout.py", folder.path(),
              folder.path(only_run(folder))});
}

/// Trains with `more` in copies of the files, once killed twice, and compares all bits.
inline void check_killed_twice(const std::string& more, const ScratchFolder& from = files()) {
  const std::string program = "'" STEPOP_BINARY_DIR "/stepop' ";
  const std::string train = program +
                            "-n a -b a.yaml -t --samplers/train shuffle --num_steps 300 "
                            "--log_freq 20 --ckpt_freq 5 " +
                            more;
  const ScratchFolder whole, folder;
  for (const auto* each : {&whole, &folder}) std::filesystem::copy(from.path(), each->path());
  run_well(whole, train);
  const auto kill_at = [&](int step, const std::string& start) {
    return fmt::format(
        "{} & pid=$!; until_ok 'ls {}/logs/*/train/checkpoints/model-{}.safetensors'; kill -9 "
        "$pid; wait $pid; [ $? = 137 ] || exit 8; ",
        start, folder.path(), step);
  };
  const CommandResult result =
      run_in(folder, "export OMP_NUM_THREADS=1; " + std::string(kUntil) + kill_at(30, train) +
                         kill_at(100, program + "-p logs/* -t") + "stepop -p logs/* -t");
  CAPTURE(result.err);
  CHECK(result.exit_code == 0);
  CHECK(differences(state_after(folder, 300), state_after(whole, 300)) == "");
}

}  // namespace stepop::exported_run
