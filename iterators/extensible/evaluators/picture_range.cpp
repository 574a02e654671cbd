#include "iterators/extensible/evaluators/picture_range.h"

#include <ATen/ops/aminmax.h>
#include <fmt/format.h>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop::extensible {

PictureRange::PictureRange(const Config& params, std::string_view key)
    : range_(params.get<std::vector<double>>(key)) {
  if (range_.size() == 2 && range_[0] < range_[1]) return;
  throw params.error(key,
                     "expected two numbers, the values of black and of white, such as "
                     "[-1, 1] or [0, 1]");
}

at::Tensor PictureRange::to_unit(const at::Tensor& pictures) const {
  if (pictures.dim() != 4 || pictures.numel() == 0) {
    throw Error(fmt::format("expected pictures [B, C, H, W], found {}", describe_tensor(pictures)));
  }
  return pictures.to(at::kDouble).sub(range_[0]).div(range_[1] - range_[0]);
}

void PictureRange::check(const at::Tensor& real) const {
  const auto [low, high] = at::aminmax(real);
  const double least = low.item<double>();
  const double most = high.item<double>();
  const double tolerance = 0.01 * (range_[1] - range_[0]);
  if (least >= range_[0] - tolerance && most <= range_[1] + tolerance) return;
  throw Error(
      fmt::format("the true pictures have values from {:.4g} to {:.4g}, and range is [{}, "
                  "{}]",
                  least, most, range_[0], range_[1]));
}

}  // namespace stepop::extensible
