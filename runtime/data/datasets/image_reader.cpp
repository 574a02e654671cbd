#include "runtime/data/datasets/image_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/core/pictures/image_file.h"
#include "runtime/core/pictures/resize.h"
#include "runtime/data/datasets/class_files.h"

namespace stepop {
namespace {

constexpr int64_t kMostLength = 1 << 16;
constexpr auto kMostArea = static_cast<int64_t>(kMostPixels);

}  // namespace

std::vector<std::string> list_images(const std::string& folder, const std::string& below) {
  return list_files(folder, below, kImageEndings);
}

ImageReader::ImageReader(const Config& params)
    : channels_(params.get<int64_t>("channels", 0)),
      size_(params.get("size", std::vector<int64_t>())) {
  if (params.has("channels") && channels_ != 1 && channels_ != 3 && channels_ != 4) {
    throw params.error(
        "channels",
        fmt::format("expected 1 (grey), 3 (colour) or 4 (with alpha), found {}", channels_));
  }
  if (!params.has("size")) return;
  bool fits = size_.size() == 2;
  for (const int64_t length : size_) fits = fits && length >= 1 && length <= kMostLength;
  if (!fits) {
    throw params.error("size", fmt::format("expected [height, width], each 1 to {}, found [{}]",
                                           kMostLength, fmt::join(size_, ", ")));
  }
  if (size_[0] * size_[1] > kMostArea) {
    throw params.error("size", fmt::format("expected at most {} pixels, found {} x {}", kMostArea,
                                           size_[0], size_[1]));
  }
}

at::Tensor ImageReader::read(const std::string& path) const {
  const at::Tensor image = read_image(path, channels_);
  return size_.empty() ? image : resize_image(image, size_);
}

at::Tensor ImageReader::decode(std::string_view bytes, const std::string& name) const {
  const at::Tensor image = decode_image(bytes, name, channels_);
  return size_.empty() ? image : resize_image(image, size_);
}

at::Tensor ImageReader::read_mask(const std::string& path) const {
  const at::Tensor mask = stepop::read_mask(path);
  return size_.empty() ? mask : resize_mask(mask, size_);
}

at::Tensor ImageReader::read_stored(const std::string& path) const {
  return size_.empty() ? read_stored_image(path, channels_) : read(path);
}

Batch ImageReader::collate(const std::vector<Example>& examples, std::vector<int64_t> indices) {
  try {
    return stepop::collate(examples, std::move(indices));
  } catch (const Error& error) {
    throw Error(
        fmt::format("{}; \"size: [H, W]\" and \"channels: 3\" in the dataset's config make "
                    "its images alike",
                    error.what()));
  }
}

}  // namespace stepop
