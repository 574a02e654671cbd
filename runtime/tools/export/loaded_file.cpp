#include "runtime/tools/export/loaded_file.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/view_as_real.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <utility>

#include "runtime/train/step/random_fork.h"

namespace stepop {

double difference(const at::Tensor& found, const at::Tensor& expected) {
  constexpr double kOther = std::numeric_limits<double>::infinity();
  if (found.sizes() != expected.sizes() || found.scalar_type() != expected.scalar_type()) {
    return kOther;
  }
  if (expected.numel() == 0) return 0;
  if (found.equal(expected)) return 0;
  if (expected.is_complex()) return difference(at::view_as_real(found), at::view_as_real(expected));
  const at::Tensor a = found.to(at::kDouble);
  const at::Tensor b = expected.to(at::kDouble);
  const auto largest = (a - b).abs().max().item<double>();
  const auto scale = b.abs().max().item<double>();
  if (!std::isfinite(largest)) return kOther;
  return scale > 0 ? largest / scale : largest;
}

double difference(const Tensors& found, const Tensors& expected) {
  if (found.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double most = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    most = std::max(most, difference(found[i], expected[i]));
  }
  return most;
}

LoadedFile::LoadedFile(const std::string& bytes, const c10::Device& device) {
  std::istringstream file(bytes);
  script_ = torch::jit::load(file, device);
  script_.eval();
}

Tensors LoadedFile::run(const NetworkInputs& inputs, uint64_t seed) {
  const RandomFork random(seed, c10::kCPU);
  std::vector<c10::IValue> values;
  for (const auto& input : inputs) {
    if (input.defined()) values.emplace_back(input.clone());
  }
  const c10::IValue output = script_.forward(std::move(values));
  if (output.isTensor()) return {output.toTensor()};
  Tensors tensors;
  for (const auto& each : output.toTupleRef().elements()) tensors.push_back(each.toTensor());
  return tensors;
}

}  // namespace stepop
