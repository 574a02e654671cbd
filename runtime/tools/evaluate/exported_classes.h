#pragma once

#include <string>

#include "runtime/core/value/value.h"

namespace stepop {

/// The names of the classes that `stepop export` wrote into a TorchScript, torch.export or ONNX
/// file: a map as `class_names` of a config, whose origin is the file; null when the file has none.
/// Throws Error with the path for a file that cannot be read.
Value class_names_in_file(const std::string& path);

}  // namespace stepop
