#pragma once

#include <string>

namespace stepop {

/// The config of a small classifier with dropout and batch normalization, TestTrainer of
/// trainer_components_test.cpp: epochs of 4 batches, the last one smaller. `more` is appended.
inline std::string trainer_config(const std::string& more) {
  return R"(
iterator: TestTrainer
model: {class: TestDropoutNet, inputs: 9}
datasets:
  train: {class: Synthetic, size: 29, shape: [1, 3, 3], classes: 3}
  validation: {class: Synthetic, size: 10, shape: [1, 3, 3], classes: 3, seed: 5}
batch_size: 8
test_batch_size: 4
optimizer: {class: Adam, lr: {class: cosine, from: 1e-2, to: 1e-4, steps: 12}}
n_data_processes: 0
num_threads: 1
)" + more +
         "\n";
}

}  // namespace stepop
