#pragma once

#include <string>

namespace stepop {

/// A training of Trainer on noise, without its length; the model FitLine is trainer_test.cpp's.
inline std::string line_config(const std::string& more, const std::string& model = "FitLine") {
  const bool has_size = more.find("batch_size") != std::string::npos;
  return std::string(has_size ? "" : "batch_size: 4\n") + R"(
iterator: Trainer
num_threads: 1
optimizer: {class: SGD, lr: 0.05}
datasets:
  train: {class: RandomTensors, size: 10, tensors: {x: [4], y: [1]}}
  validation: {class: RandomTensors, size: 10, tensors: {x: [4], y: [1]}}
model: )" +
         model + "\n" + more;
}

}  // namespace stepop
