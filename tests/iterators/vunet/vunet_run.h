#pragma once

#include <filesystem>
#include <string>

#include "eval_out/read/eval_reader.h"
#include "tests/test_run.h"

namespace stepop {

/// A small VUNet on Figures of 32 pixels, as a config: epochs of 2 steps, 6 examples to evaluate.
/// `more` is laid over it.
inline std::string vunet_config(const std::string& more = "") {
  return R"(
iterator: VUNetIterator
model: {class: VUNet, spatial_size: 32, nf_start: 4, nf_max: 8}
datasets:
  train: {class: Figures, size: 32, examples: 8, num_people: 4}
  validation: {class: Figures, size: 32, examples: 6, num_people: 3, offset: 8}
batch_size: 4
optimizer: {class: Adam, lr: 1e-3}
log_freq: 1
num_threads: 1
n_data_processes: 0
transfer_appearances: 2
)" + more;
}

/// The outputs of the evaluation after a step.
inline EvalFile outputs_after(const TestRun& run, int64_t step) {
  const std::filesystem::path evaluation =
      *std::filesystem::directory_iterator(run.root() + "/eval");
  return EvalFile((evaluation / std::to_string(step) / "outputs.h5").string());
}

}  // namespace stepop
