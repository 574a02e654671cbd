#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/core/base/interrupt.h"
#include "runtime/tools/export/exported_network.h"

namespace stepop {

/// A program in Python that writes a network as another kind of file.
struct PythonWriter {
  const char* what;                   ///< `an ONNX file`
  std::vector<std::string> packages;  ///< What it imports.
  /// Gets `net`, the network in TorchScript; `examples`, pairs of tuples of inputs and outputs;
  /// `path`, the file to write; and `options`. It ends with `done({...})`, or with
  /// `refuse("reason")`.
  const char* code;
};

/// Runs it in the Python of `find_python`. What it wrote is moved to `path` when `accepts` does not
/// throw on what `done` got: the file is there as a whole or not at all. Throws Error, with the
/// installation command, when Python or a package is missing, and with the reason when the writer
/// refuses the network.
void write_with_python(const PythonWriter& writer, const ExportedNetwork& exported,
                       const std::string& path, const nlohmann::json& options,
                       const InterruptCheck& interrupt,
                       const std::function<void(const nlohmann::json&)>& accepts);

}  // namespace stepop
