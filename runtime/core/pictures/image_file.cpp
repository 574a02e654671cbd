#include "runtime/core/pictures/image_file.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/formats/gzip_file.h"
#include "runtime/core/measure/tensor_statistics.h"

namespace stepop {
namespace {

constexpr std::string_view kPngMagic = "\x89PNG\r\n\x1a\n";
constexpr std::string_view kJpegMagic = "\xff\xd8\xff";

float value_at(const Pixels& pixels, size_t i) {
  if (!pixels.is_16_bit) return from_byte(pixels.bytes[i]);
  return (static_cast<float>(pixels.number_at(i)) - 32767.5F) * (1.0F / 32767.5F);
}

/// Converts stored pixels [H, W, C] to [channels, H, W] in [-1, 1].
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
    if (c == 3 && stored < 4) {
      std::fill_n(values + c * count, count, 1.0F);
      continue;
    }
    const size_t from = stored == 1 ? 0 : c;
    for (size_t i = 0; i < count; ++i) values[c * count + i] = value_at(pixels, stored * i + from);
  }
  return image;
}

uint32_t big_endian(std::string_view bytes) {
  uint32_t number = 0;
  for (const char c : bytes) number = number << 8 | static_cast<unsigned char>(c);
  return number;
}

/// Reads the size and colour type (https://www.w3.org/TR/png/#11IHDR).
std::optional<ImageHead> png_head(std::string_view bytes) {
  constexpr size_t kEnd = 26;
  if (bytes.size() < kEnd) return std::nullopt;
  const bool is_grey = (bytes[25] & 2) == 0;  // bit 1 of the colour type
  return ImageHead{.is_jpeg = false,
                   .height = big_endian(bytes.substr(20, 4)),
                   .width = big_endian(bytes.substr(16, 4)),
                   .channels = is_grey ? 1 : 3};
}

/// Reads the frame's header, the segment SOF; each segment before it states its length (ITU-T T.81,
/// B.1 and B.2.2).
std::optional<ImageHead> jpeg_head(std::string_view bytes) {
  constexpr size_t kFrameBytes = 10;
  for (size_t at = 2; at + kFrameBytes <= bytes.size() && bytes[at] == '\xff';) {
    const auto marker = static_cast<unsigned char>(bytes[at + 1]);
    const bool is_table = marker == 0xc4 || marker == 0xc8 || marker == 0xcc;
    if (marker >= 0xc0 && marker <= 0xcf && !is_table) {
      return ImageHead{.is_jpeg = true,
                       .height = big_endian(bytes.substr(at + 5, 2)),
                       .width = big_endian(bytes.substr(at + 7, 2)),
                       .channels = bytes[at + 9] == 1 ? 1 : 3};
    }
    at += 2 + big_endian(bytes.substr(at + 2, 2));
  }
  return std::nullopt;
}

}  // namespace

std::string too_many_pixels(size_t width, size_t height) {
  return fmt::format("it has {} x {} pixels, and at most {} are read: make it smaller, or cut it",
                     width, height, with_thousands(static_cast<int64_t>(kMostPixels)));
}

namespace {

Pixels decode_pixels(std::string_view bytes, const std::string& name, int64_t channels) {
  if (channels != 0 && channels != 1 && channels != 3 && channels != 4) {
    throw Error(
        fmt::format("{}: an image is read with 1, 3 or 4 channels, or 0 for as many as it "
                    "has; asked for were {}",
                    name, channels));
  }
  if (bytes.empty())
    throw Error(fmt::format("{}: expected a PNG, JPEG or WebP, the file is empty", name));
  if (bytes.starts_with(kPngMagic)) return decode_png(bytes, name, channels == 4);
  if (bytes.starts_with(kJpegMagic)) return decode_jpeg(bytes, name);
  if (is_webp(bytes)) return decode_webp(bytes, name, channels == 4);
  std::string start;
  for (const char c : bytes.substr(0, 4)) {
    start += fmt::format(" {:02x}", static_cast<unsigned char>(c));
  }
  throw Error(fmt::format("{}: expected a PNG, JPEG or WebP, the file begins with{}", name, start));
}

/// Like to_tensor; 0 `channels` means as many as stored.
at::Tensor tensor_of(const Pixels& pixels, int64_t channels) {
  return to_tensor(pixels, channels == 0 ? pixels.channels : static_cast<size_t>(channels));
}

}  // namespace

at::Tensor read_image(const std::string& path, int64_t channels) {
  return decode_image(read_plain_or_gzip(path), path, channels);
}

at::Tensor decode_image(std::string_view bytes, const std::string& name, int64_t channels) {
  return tensor_of(decode_pixels(bytes, name, channels), channels);
}

at::Tensor read_mask(const std::string& path) {
  return decode_mask(read_plain_or_gzip(path), path);
}

at::Tensor decode_mask(std::string_view bytes, const std::string& name) {
  if (bytes.starts_with(kJpegMagic)) {
    throw Error(name +
                ": a mask is a PNG of class numbers; a JPEG does not keep the numbers that were "
                "written");
  }
  if (!bytes.starts_with(kPngMagic)) decode_pixels(bytes, name, 0);  // throws
  const Pixels pixels = decode_png_numbers(bytes, name);
  at::Tensor mask = at::empty(
      {static_cast<int64_t>(pixels.height), static_cast<int64_t>(pixels.width)}, at::kLong);
  auto* classes = mask.mutable_data_ptr<int64_t>();
  for (size_t i = 0; i < pixels.height * pixels.width; ++i) {
    const size_t at = i * pixels.channels;
    classes[i] = pixels.number_at(at);
    for (size_t c = 1; c < pixels.channels; ++c) {
      if (pixels.number_at(at + c) == classes[i]) continue;
      throw Error(fmt::format(
          "{}: a mask is a PNG of class numbers, grey or with a palette; found the colour [{}, {}, "
          "{}] in column {}, row {}",
          name, pixels.number_at(at), pixels.number_at(at + 1), pixels.number_at(at + 2),
          i % pixels.width, i / pixels.width));
    }
  }
  return mask;
}

at::Tensor read_stored_image(const std::string& path, int64_t channels) {
  const auto pixels =
      std::make_shared<Pixels>(decode_pixels(read_plain_or_gzip(path), path, channels));
  const auto stored = static_cast<int64_t>(pixels->channels);
  if (pixels->is_16_bit || (channels != 0 && channels != stored)) {
    return tensor_of(*pixels, channels);
  }
  return at::from_blob(
             pixels->bytes.data(),
             {static_cast<int64_t>(pixels->height), static_cast<int64_t>(pixels->width), stored},
             /*deleter=*/[pixels](void*) {}, at::kByte)
      .permute({2, 0, 1});
}

at::Tensor from_stored_image(const at::Tensor& bytes) {
  return bytes.to(at::kFloat, /*non_blocking=*/false, /*copy=*/false, at::MemoryFormat::Contiguous)
      .sub_(127.5F)
      .mul_(1.0F / 127.5F);
}

void check_picture(const at::Tensor& picture, const char* what) {
  const bool fits = picture.defined() && picture.device().is_cpu() &&
                    picture.scalar_type() == at::kByte && picture.dim() == 3 &&
                    picture.numel() > 0 && (picture.size(2) == 1 || picture.size(2) == 3);
  if (fits) return;
  throw Error(
      fmt::format("{} is made of a uint8 tensor [H, W, C] on the CPU with C = 1 or 3, found {}",
                  what, describe_tensor(picture)));
}

std::vector<unsigned char*> rows_of(const at::Tensor& picture) {
  std::vector<unsigned char*> rows;
  for (int64_t y = 0; y < picture.size(0); ++y) {
    rows.push_back(const_cast<unsigned char*>(picture.const_data_ptr<uint8_t>()) +
                   y * picture.stride(0));
  }
  return rows;
}

std::string encode_image(const at::Tensor& picture, const ImageEncoding& encoding) {
  return encoding.is_jpeg ? encode_jpeg(picture, encoding.quality) : encode_png(picture);
}

std::optional<ImageHead> image_head(std::string_view bytes) {
  if (bytes.starts_with(kPngMagic)) return png_head(bytes);
  return bytes.starts_with(kJpegMagic) ? jpeg_head(bytes) : std::nullopt;
}

const char* image_ending(std::string_view bytes) {
  return bytes.starts_with(kJpegMagic) ? ".jpg" : ".png";
}

bool is_image_ending(std::string_view ending) { return ending == ".png" || ending == ".jpg"; }

}  // namespace stepop
