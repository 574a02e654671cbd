#include "eval_out/callbacks/images.h"

#include <fmt/format.h>

#include "eval_out/hdf5/hdf5_types.h"

namespace stepop {

void check_images(const RowValues& values) {
  const auto& shape = values.shape();
  const bool is_image =
      shape.size() == 2 || (shape.size() == 3 && (shape[0] == 1 || shape[0] == 3));
  const bool is_number = c10::isFloatingType(values.dtype()) || values.dtype() == at::kByte;
  bool is_empty = false;
  for (const int64_t length : shape) is_empty = is_empty || length == 0;
  if (is_image && is_number && !is_empty) return;
  throw Error(
      fmt::format("{} must hold images, [C, H, W] with C = 1 or 3 or [H, W], of floats in "
                  "[-1, 1] or of uint8; found {} {}",
                  values.name(), type_name(values.dtype()), shape_text(shape)));
}

at::Tensor to_images(const at::Tensor& rows) {
  at::Tensor images = rows.dim() == 3 ? rows.unsqueeze(1) : rows;
  const bool are_bytes = images.scalar_type() == at::kByte;
  images = images.to(at::kFloat);
  return are_bytes ? images.sub_(127.5).mul_(1.0 / 127.5) : images;
}

}  // namespace stepop
