#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <torch/csrc/jit/api/module.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/train/networks/network_calls.h"

namespace stepop {

using Tensors = std::vector<at::Tensor>;

/// The largest difference as a share of the largest number in `expected`; infinite for other shapes
/// or types, or where only one of the two is finite.
double difference(const at::Tensor& found, const at::Tensor& expected);
/// The largest difference of all tensors; infinite for another number of tensors.
double difference(const Tensors& found, const Tensors& expected);

/// An exported file as a program sees it after loading it.
class LoadedFile {
 public:
  /// `bytes` is the TorchScript file. Throws LibTorch's errors for other bytes.
  LoadedFile(const std::string& bytes, const c10::Device& device);

  /// The file's outputs, with random generators seeded with `seed`.
  Tensors run(const NetworkInputs& inputs, uint64_t seed);

 private:
  torch::jit::Module script_;
};

}  // namespace stepop
