#include "runtime/train/networks/image_input.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop {

ImageInput::ImageInput(const Config& params, const std::string& channels_key, int64_t channels,
                       const std::string& size_key, std::vector<int64_t> size)
    : channels_(channels), size_(std::move(size)), keys_(join_path(params.path(), channels_key)) {
  if (!size_.empty()) keys_ += " and " + join_path(params.path(), size_key);
}

void ImageInput::check(const at::Tensor& images) const {
  if (images.dim() != 4 || images.size(1) != channels_) refuse(images);
}

void ImageInput::refuse(const at::Tensor& images) const {
  throw Error(fmt::format("expected images [B, {}, {}], by {}, found {}", channels_,
                          size_.empty() ? "H, W" : fmt::format("{}, {}", size_[0], size_[1]), keys_,
                          describe_tensor(images)));
}

}  // namespace stepop
