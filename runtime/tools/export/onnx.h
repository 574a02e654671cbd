#pragma once

#include <string>

#include "runtime/core/base/interrupt.h"
#include "runtime/tools/export/exported_network.h"

namespace stepop {

/// What there is to say of an ONNX file.
struct OnnxReport {
  int64_t opset = 0;
  double most_difference =
      0;  ///< Of what onnxruntime makes of the examples, by the largest output.
};

/// Differences of onnxruntime's outputs above this share of the largest one are errors: its kernels
/// add up in another order.
inline constexpr double kMostOnnxDifference = 1e-4;

/// Writes the network as an ONNX file, whole or not at all: `torch.onnx` of Python makes it from
/// the TorchScript file, and onnxruntime gets the examples. Python is found as by `find_python`.
/// Throws Error, with the command that installs it, when Python or a package is missing; with the
/// reason, when an operation has no counterpart or onnxruntime gives other outputs.
OnnxReport write_onnx(const ExportedNetwork& exported, const std::string& path,
                      const InterruptCheck& interrupt);

}  // namespace stepop
