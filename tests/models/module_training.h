// A small training of a network from a file.
#pragma once

#include <string>

namespace stepop {

/// Of a network that takes images [B, 1, 3, 3] and returns the logits of 3 classes.
inline std::string module_training(const std::string& model, const std::string& more = "") {
  return "iterator: Classifier\nmodel: " + model + R"(
datasets:
  train: {class: Synthetic, size: 29, shape: [1, 3, 3], classes: 3}
  validation: {class: Synthetic, size: 10, shape: [1, 3, 3], classes: 3, seed: 5}
batch_size: 8
optimizer: {class: Adam, lr: 1e-2}
num_steps: 9
num_threads: 1
n_data_processes: 0
ema: {decay: 0.9}
eval_weights: ema
)" + more;
}

}  // namespace stepop
