#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>

#include <string>

#include "runtime/core/config/config.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/train/optim/optimizer.h"

namespace stepop::test_networks {

inline Config config_of(const std::string& text) {
  return Config(parse_yaml(text, {"test.yaml", 0}));
}

/// A layer from 3 to 4 numbers, with its parameters by name.
struct TestLayer {
  at::Tensor weight = (at::arange(12, at::kFloat).reshape({4, 3}) / 10 - 0.5).requires_grad_();
  at::Tensor bias = (at::arange(4, at::kFloat) / 8).requires_grad_();

  NamedParameters parameters() const { return {{"fc.weight", weight}, {"fc.bias", bias}}; }

  /// [B, 3] -> [B, 4].
  at::Tensor forward(const at::Tensor& input) const { return input.matmul(weight.t()) + bias; }
};

/// A batch of `size` inputs [B, 3], different for every `step`.
inline at::Tensor test_input(int64_t size, int64_t step = 0) {
  return (at::arange(size * 3, at::kFloat) + static_cast<double>(step)).sin().reshape({size, 3});
}

}  // namespace stepop::test_networks
