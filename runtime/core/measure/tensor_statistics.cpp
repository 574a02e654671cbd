#include "runtime/core/measure/tensor_statistics.h"

#include <ATen/ops/isinf.h>
#include <ATen/ops/isnan.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace stepop {
namespace {

constexpr int64_t kPiece = 1 << 18;

}  // namespace

std::string describe_tensor(const at::Tensor& tensor) {
  if (!tensor.defined()) return "an undefined tensor";
  return fmt::format("{} [{}]", c10::getDtypeNames(tensor.scalar_type()).first,
                     fmt::join(tensor.sizes(), ", "));
}

void TensorStatistics::add(const at::Tensor& values) {
  count_ += values.numel();
  const at::Tensor flat = values.detach().reshape({-1});
  if (flat.is_complex()) {
    nans_ += flat.isnan().sum().item<int64_t>();
    infinities_ += flat.isinf().sum().item<int64_t>();
    return;
  }
  for (int64_t begin = 0; begin < flat.numel(); begin += kPiece) {
    const at::Tensor piece =
        flat.slice(0, begin, std::min(begin + kPiece, flat.numel())).to(at::kDouble).contiguous();
    const auto* numbers = piece.const_data_ptr<double>();
    int64_t finite = 0;
    double sum = 0;
    for (int64_t i = 0; i < piece.numel(); ++i) {
      const double number = numbers[i];
      if (!std::isfinite(number)) {
        ++(std::isnan(number) ? nans_ : infinities_);
        continue;
      }
      const bool is_first = finite_ + finite == 0;
      min_ = is_first ? number : std::min(min_, number);
      max_ = is_first ? number : std::max(max_, number);
      // The sum is relative to the mean so far, so that numbers near the largest do not overflow.
      sum += number - mean_;
      ++finite;
    }
    finite_ += finite;
    if (finite > 0) mean_ += sum / static_cast<double>(finite_);
  }
}

}  // namespace stepop
