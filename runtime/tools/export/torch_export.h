#pragma once

#include <string>

#include "runtime/core/base/interrupt.h"
#include "runtime/tools/export/exported_network.h"

namespace stepop {

/// Writes the network as a program of torch.export, completely or not at all, which
/// `torch.export.load` and `class: Exported` read: PyTorch's own converter makes it from the
/// TorchScript file. Returns the largest difference of its outputs, relative to the largest output,
/// on the examples and on a batch of another size. Throws Error as write_with_python does, and when
/// outputs differ by more than kMostDifference.
double write_torch_export(const ExportedNetwork& exported, const std::string& path,
                          const InterruptCheck& interrupt);

}  // namespace stepop
