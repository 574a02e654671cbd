#include "runtime/data/datasets/image_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/formats/gzip_file.h"
#include "runtime/core/pictures/exif.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/core/pictures/resize.h"
#include "runtime/core/pictures/webp.h"
#include "runtime/data/datasets/class_files.h"
#include "runtime/data/notice.h"

namespace stepop {
namespace {

constexpr int64_t kMostLength = 1 << 16;
constexpr auto kMostArea = static_cast<int64_t>(kMostPixels);

}  // namespace

const std::vector<std::string_view>& image_endings() {
  static const std::vector<std::string_view> endings = [] {
    std::vector<std::string_view> all = {".png", ".jpg", ".jpeg"};
    if (has_webp()) all.emplace_back(".webp");
    return all;
  }();
  return endings;
}

std::vector<std::string> list_images(const std::string& folder, LeftOut& left_out) {
  try {
    return list_files(folder, "", image_endings(), left_out);
  } catch (const std::filesystem::filesystem_error& error) {
    throw Error(
        fmt::format("{}: cannot be listed: {}", error.path1().string(), error.code().message()));
  }
}

void ImageOptions::declare(Parameters& p) {
  declare_size(p);
  declare_channels(p);
  declare_exif(p);
}

void ImageOptions::declare_size(Parameters& p) {
  const Config* config =
      p.describe_optional("size", "list of int", "[H, W] to resize to; null: as stored");
  if (config == nullptr) return;
  size = config->get<std::vector<int64_t>>("size");
  bool fits = size.size() == 2;
  for (const int64_t length : size) fits = fits && length >= 1 && length <= kMostLength;
  if (!fits) {
    throw config->error("size", fmt::format("expected [height, width], each 1 to {}, found [{}]",
                                            kMostLength, fmt::join(size, ", ")));
  }
  if (size[0] * size[1] > kMostArea) {
    throw config->error("size", fmt::format("expected at most {} pixels, found {} x {}", kMostArea,
                                            size[0], size[1]));
  }
}

void ImageOptions::declare_channels(Parameters& p) {
  const Config* config = p.describe_optional(
      "channels", "int", "of images, 1 (grey), 3 (colour) or 4 (with alpha); null: as stored");
  if (config == nullptr) return;
  channels = config->get<int64_t>("channels");
  if (channels == 1 || channels == 3 || channels == 4) return;
  throw config->error(
      "channels",
      fmt::format("expected 1 (grey), 3 (colour) or 4 (with alpha), found {}", channels));
}

void ImageOptions::declare_exif(Parameters& p) {
  p.add("exif", exif,
        "true: images are turned upright, as their EXIF orientation says; false: as stored");
}

at::Tensor ImageReader::read(const std::string& path) const {
  if (options_.exif) return decode(read_plain_or_gzip(path), path);
  const at::Tensor image = read_image(path, options_.channels);
  return options_.size.empty() ? image : resize_image(image, options_.size);
}

at::Tensor ImageReader::decode(std::string_view bytes, const std::string& name) const {
  at::Tensor image = decode_image(bytes, name, options_.channels);
  if (options_.exif) image = turned_upright(image, exif_orientation(bytes));
  return options_.size.empty() ? image : resize_image(image, options_.size);
}

at::Tensor ImageReader::read_mask(const std::string& path) const {
  at::Tensor mask = stepop::read_mask(path);
  if (options_.exif) {
    mask = turned_upright(mask.unsqueeze(0), exif_orientation_of_file(path)).squeeze(0);
  }
  return options_.size.empty() ? mask : resize_mask(mask, options_.size);
}

at::Tensor ImageReader::read_stored(const std::string& path) const {
  if (!options_.size.empty()) return read(path);
  const at::Tensor image = read_stored_image(path, options_.channels);
  return options_.exif ? turned_upright(image, exif_orientation_of_file(path)) : image;
}

std::string orientation_notice(const std::string& folder, std::span<const std::string> files) {
  constexpr size_t kMostLookedAt = 1000;
  const size_t count = std::min(files.size(), kMostLookedAt);
  int64_t found = 0;
  std::string first;
  for (size_t i = 0; i < count; ++i) {
    const std::string& file = files[i * files.size() / count];
    const int orientation =
        exif_orientation_of_file(folder.empty() ? file : fmt::format("{}/{}", folder, file));
    if (orientation == kUpright) continue;
    if (found++ == 0) first = fmt::format("{}: {}", file, orientation);
  }
  if (found == 0) return {};
  const std::string looked_at =
      counted(static_cast<int64_t>(count), "image") + (count < files.size() ? " looked at" : "");
  return orientation_warning(folder, found, looked_at, first);
}

std::string orientation_warning(const std::string& place, int64_t found,
                                const std::string& looked_at, const std::string& first) {
  return fmt::format(
      "{}{}{} of {} {} an EXIF orientation ({}) and {} read as stored, mirrored or on the side; "
      "\"exif: true\" turns images upright",
      kWarning, place.empty() ? "" : place + ": ", with_thousands(found), looked_at,
      found == 1 ? "has" : "have", first, found == 1 ? "is" : "are");
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
