#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/base/interrupt.h"
#include "runtime/tools/export/exported_network.h"

namespace stepop {

/// The results of writing an ONNX file.
struct OnnxReport {
  int64_t opset = 0;
  double most_difference =
      0;  ///< The largest difference of onnxruntime's outputs, relative to the largest output.
};

/// How an ONNX file is written, as torch.onnx.export names it.
struct OnnxOptions {
  int64_t opset = 17;  ///< ONNX 1.12, 2022: has layer normalization, and is widely supported.
  bool folds_constants = true;
  std::vector<std::string> output_names;  ///< Empty: `output`, or `output_0` and so on.
};

/// Larger differences of onnxruntime's outputs, as a share of the largest output, are errors; its
/// kernels add in another order.
inline constexpr double kMostOnnxDifference = 1e-4;

/// Writes the network as an ONNX file, completely or not at all: Python's `torch.onnx` makes it
/// from the TorchScript file, and onnxruntime runs the examples. `find_python` finds Python. Throws
/// Error, with the installation command, when Python or a package is missing; with the reason, when
/// an operation has no counterpart or onnxruntime's outputs differ.
OnnxReport write_onnx(const ExportedNetwork& exported, const std::string& path,
                      const OnnxOptions& options, const InterruptCheck& interrupt);

}  // namespace stepop
