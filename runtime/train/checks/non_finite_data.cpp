#include "runtime/train/checks/non_finite_data.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "runtime/core/base/text.h"
#include "runtime/train/optim/non_finite.h"

namespace stepop {
namespace {

/// The examples of the batch that have NaN or infinity; none when the tensor has no row per
/// example.
std::vector<std::string> examples_of(const Batch& batch, const at::Tensor& tensor) {
  std::vector<std::string> examples;
  if (tensor.dim() == 0 || tensor.size(0) != batch.size()) return examples;
  for (int64_t row = 0; row < batch.size(); ++row) {
    if (is_finite(tensor[row])) continue;
    examples.push_back(std::to_string(batch.indices()[static_cast<size_t>(row)]));
  }
  return examples;
}

}  // namespace

std::string non_finite_data(const Batch& batch) {
  std::string text;
  for (const auto& [key, tensor] : batch.tensors()) {
    if (!tensor.is_floating_point() || tensor.numel() == 0 || is_finite(tensor)) continue;
    const std::vector<std::string> examples = examples_of(batch, tensor);
    std::string of;
    if (!examples.empty()) {
      of = fmt::format(" of example{} {}", examples.size() == 1 ? "" : "s", list_text(examples));
    }
    text += fmt::format("{}{}{} {} {}", text.empty() ? "" : ", ", key, of,
                        examples.size() > 1 ? "have" : "has",
                        std::isnan(first_non_finite(tensor)) ? "NaN" : "infinity");
  }
  return text;
}

}  // namespace stepop
