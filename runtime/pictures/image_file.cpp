#include "runtime/pictures/image_file.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <cstring>

#include "runtime/base/error.h"
#include "runtime/base/number_text.h"
#include "runtime/formats/gzip_file.h"

namespace stepop {
namespace {

constexpr std::string_view kPngMagic = "\x89PNG\r\n\x1a\n";
constexpr std::string_view kJpegMagic = "\xff\xd8\xff";

float value_at(const Pixels& pixels, size_t i) {
  if (!pixels.is_16_bit) return from_byte(pixels.bytes[i]);
  uint16_t value = 0;
  std::memcpy(&value, pixels.bytes.data() + 2 * i, 2);
  return (static_cast<float>(value) - 32767.5F) * (1.0F / 32767.5F);
}

/// [H, W, C] as stored -> [channels, H, W] in [-1, 1].
at::Tensor to_tensor(const Pixels& pixels, size_t channels) {
  at::Tensor image = at::empty({static_cast<int64_t>(channels), static_cast<int64_t>(pixels.height),
                                static_cast<int64_t>(pixels.width)},
                               at::kFloat);
  auto* values = image.mutable_data_ptr<float>();
  const size_t count = pixels.height * pixels.width;
  const size_t stored = pixels.channels;
  if (stored == 3 && channels == 1) {
    for (size_t i = 0; i < count; ++i) {
      values[i] = 0.299F * value_at(pixels, 3 * i) + 0.587F * value_at(pixels, 3 * i + 1) +
                  0.114F * value_at(pixels, 3 * i + 2);
    }
    return image;
  }
  for (size_t c = 0; c < channels; ++c) {
    const size_t from = stored == 1 ? 0 : c;
    for (size_t i = 0; i < count; ++i) values[c * count + i] = value_at(pixels, stored * i + from);
  }
  return image;
}

}  // namespace

std::string too_many_pixels(size_t width, size_t height) {
  return fmt::format("it has {} x {} pixels, and at most {} are read: make it smaller, or cut it",
                     width, height, with_thousands(static_cast<int64_t>(kMostPixels)));
}

at::Tensor read_image(const std::string& path, int64_t channels) {
  return decode_image(read_plain_or_gzip(path), path, channels);
}

at::Tensor decode_image(std::string_view bytes, const std::string& name, int64_t channels) {
  if (channels != 0 && channels != 1 && channels != 3) {
    throw Error(
        fmt::format("{}: an image is read with 1 or 3 channels, or 0 for as many as it "
                    "has; asked for were {}",
                    name, channels));
  }
  if (bytes.empty())
    throw Error(fmt::format("{}: expected a PNG or JPEG, the file is empty", name));
  Pixels pixels;
  if (bytes.starts_with(kPngMagic)) {
    pixels = decode_png(bytes, name);
  } else if (bytes.starts_with(kJpegMagic)) {
    pixels = decode_jpeg(bytes, name);
  } else {
    std::string start;
    for (const char c : bytes.substr(0, 4)) {
      start += fmt::format(" {:02x}", static_cast<unsigned char>(c));
    }
    throw Error(fmt::format("{}: expected a PNG or JPEG, the file begins with{}", name, start));
  }
  return to_tensor(pixels, channels == 0 ? pixels.channels : static_cast<size_t>(channels));
}

}  // namespace stepop
