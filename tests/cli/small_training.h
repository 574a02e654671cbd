#pragma once

#include <string>

namespace stepop {

/// A config for several processes: 4 steps an epoch, a checkpoint after each step. `train` is the
/// dataset, of 64 examples.
inline std::string small_training(const std::string& train) {
  return R"(
iterator: Classifier
model: {class: MLP, inputs: 64, hidden: [16]}
datasets:
  train: )" +
         train + R"(
  validation: {class: Synthetic, size: 20, shape: [1, 8, 8], seed: 1}
batch_size: 16
num_steps: 12
optimizer: {class: SGD, lr: 0.1, momentum: 0.9}
log_freq: 4
ckpt_freq: 1
num_threads: 1
n_data_processes: 0
distributed: {timeout: 4s}
)";
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace stepop
