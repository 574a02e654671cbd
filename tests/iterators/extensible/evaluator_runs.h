// Trainings of a small network with evaluators, and what they leave.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "eval_out/read/eval_reader.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"
#include "tests/test_run.h"

namespace stepop {
namespace extensible_evaluators_test {

/// TorchScript networks: `mean.pt`, the mean of each channel; `corner.pt`, the first two pixels of
/// the first row; `picture.pt`, no features but a picture's sum.
inline const ScratchFolder& networks() {
  static const ScratchFolder folder;
  static const bool done = [] {
    folder.write("make.py", R"(
import sys
import torch

class Mean(torch.nn.Module):
    def forward(self, x):
        return x.mean((2, 3), keepdim=True)

class Corner(torch.nn.Module):
    def forward(self, x):
        return x[:, :, 0, :2]

class Sum(torch.nn.Module):
    def forward(self, x):
        return x.sum()

for name, module in {"mean": Mean(), "corner": Corner(), "sum": Sum()}.items():
    torch.jit.script(module).save(f"{sys.argv[1]}/{name}.pt")
)");
    run_python("import runpy, sys; runpy.run_path(sys.argv[1] + '/make.py', run_name='__main__')",
               {folder.path()});
    return true;
  }();
  return done ? folder : folder;
}

inline constexpr const char* kBase = R"(
iterator: ExtensibleTrainer
num_threads: 1
batch_size: 4
num_steps: 4
log_freq: 1000
seed: 3
datasets:
  train: {class: RandomTensors, size: 8, tensors: {lq: [3, 8, 8], hq: [3, 16, 16]}}
  validation: {class: RandomTensors, size: 6, tensors: {lq: [3, 8, 8], hq: [3, 16, 16]}, seed: 5}
networks: {g: {which_model: toy_g, nf: 4, scale: 2}}
steps:
  s:
    training: g
    optimizer_params: {lr: 0.001}
    injectors: {g: {type: generator, generator: g, in: lq, out: gen}}
    losses: {pix: {type: pix, criterion: l1, weight: 1, real: hq, fake: gen}}
eval_hook: {freq: 2}
)";

/// `evaluators`: YAML of a map.
inline std::string config(const std::string& evaluators) {
  return fmt::format("{}eval: {{output_state: gen, evaluators: {}}}\n", kBase, evaluators);
}

/// The file of the evaluation after `step`; `name`: of one of `evaluations`.
inline EvalFile outputs_of(const TestRun& run, int64_t step, const std::string& name = "") {
  const std::string end = fmt::format("/{}/{}outputs.h5", step, name.empty() ? "" : name + "/");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run.root() + "/eval")) {
    const std::string path = entry.path().string();
    if (path.ends_with(end)) return EvalFile(path);
  }
  throw std::runtime_error("no such evaluation");
}

/// The numbers of the evaluations after `step`.
inline nlohmann::json numbers_of(const TestRun& run, int64_t step) {
  nlohmann::json numbers = nlohmann::json::object();
  for (const auto& line : run.metrics()) {
    if (line["step"] == step) numbers.update(line);
  }
  return numbers;
}

}  // namespace extensible_evaluators_test
}  // namespace stepop
