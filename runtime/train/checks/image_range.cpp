#include "runtime/train/checks/image_range.h"

#include <ATen/ops/aminmax.h>
#include <fmt/format.h>

#include "runtime/core/base/number_text.h"

namespace stepop {

std::string image_range_warning(const std::string& name, const at::Tensor& images) {
  if (images.numel() == 0) return {};
  constexpr double kFarOutside = 10;
  const auto [smallest, greatest] = at::aminmax(images);
  const auto low = smallest.item<double>();
  const auto high = greatest.item<double>();
  if (!(low < -kFarOutside || high > kFarOutside)) return {};
  const bool is_of_bytes = low >= 0 && high <= 255;
  return fmt::format(
      "{}: its numbers are from {} to {}, and the picture shows those from -1 (black) to 1 "
      "(white){}",
      name, short_number(low), short_number(high),
      is_of_bytes ? ": divide by 127.5 and subtract 1" : "");
}

}  // namespace stepop
