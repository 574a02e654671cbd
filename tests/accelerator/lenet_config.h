#pragma once

#include <cstdint>
#include <string>

namespace stepop::accelerator {

/// A LeNet without random numbers besides those of its weights and of the data: with 29 examples
/// three epochs of four batches, the last one smaller.
inline std::string lenet_config(const std::string& device, const std::string& more = "",
                                int64_t examples = 29) {
  const bool has_optimizer = more.find("optimizer:") != std::string::npos;
  return R"(
iterator: Classifier
model: {class: LeNet, image_size: [12, 12], classes: 3}
datasets:
  train: {class: Synthetic, size: )" +
         std::to_string(examples) +
         R"(, shape: [1, 12, 12], classes: 3}
  validation: {class: Synthetic, size: 10, shape: [1, 12, 12], classes: 3, seed: 5}
batch_size: 8
test_batch_size: 4
num_epochs: 3
num_threads: 1
device: )" +
         device + "\n" + (more.find("log_freq:") == std::string::npos ? "log_freq: 2\n" : "") +
         more +
         (has_optimizer ? "\n"
                        : "\noptimizer: {class: Adam, lr: {class: cosine, from: 1e-2, to: 1e-4, "
                          "steps: end}}\n");
}

}  // namespace stepop::accelerator
