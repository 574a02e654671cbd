#include "runtime/data/datasets/tables/float32_loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/core/base/number_text.h"
#include "runtime/data/notice.h"

namespace stepop {

Float32Loss float32_loss(const at::Tensor& numbers) {
  constexpr double kFloat32Rounding = 0x1p-24;  // relative
  const auto* begin = numbers.const_data_ptr<double>();
  double most = 0;
  double mean = 0;
  double squares = 0;
  double count = 0;
  for (int64_t i = 0; i < numbers.numel(); ++i) {
    if (!std::isfinite(begin[i])) continue;
    most = std::max(most, std::abs(begin[i]));
    const double step = begin[i] - mean;
    mean += step / ++count;
    squares += step * (begin[i] - mean);
  }
  const double deviation = count > 0 ? std::sqrt(squares / count) : 0;
  return {deviation, deviation > 0 ? most * kFloat32Rounding / deviation : 0};
}

std::string float32_notice(const at::Tensor& numbers, const std::string& file,
                           const std::string& key, std::string_view whole) {
  constexpr double kMostLost = 1e-3;
  const at::Tensor parts = numbers.dim() == 1 ? numbers.unsqueeze(1) : numbers;
  Float32Loss worst;
  for (int64_t i = 0; i < parts.size(1); ++i) {
    const Float32Loss loss = float32_loss(parts.select(1, i).contiguous());
    if (loss.share > worst.share) worst = loss;
  }
  if (worst.share < kMostLost) return {};
  return fmt::format(
      "{}{}: \"{}\": float32 rounds its numbers by up to {}, and their standard deviation is {}; a "
      "Standardized around {} subtracts before it rounds",
      kWarning, file, key, short_number(worst.share * worst.deviation),
      short_number(worst.deviation), whole);
}

}  // namespace stepop
