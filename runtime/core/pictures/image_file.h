#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepop {

/// Larger images are refused: as a float tensor, they would take more than 1.2 GB.
inline constexpr size_t kMostPixels = 100'000'000;

/// The message for an image of that size, with the limit and advice.
std::string too_many_pixels(size_t width, size_t height);

/// An image's byte as a number in [-1, 1]: 0 is -1 and 255 is 1, both exactly.
inline float from_byte(uint8_t byte) {
  return (static_cast<float>(byte) - 127.5F) * (1.0F / 127.5F);
}

/// Converts `count` bytes to numbers in [-1, 1]; compilers vectorize the loop.
inline void from_bytes(const uint8_t* bytes, float* values, size_t count) {
  for (size_t i = 0; i < count; ++i) values[i] = from_byte(bytes[i]);
}

/// The nearest byte to a number in [-1, 1]; numbers outside are clamped. Not for NaN.
inline uint8_t to_byte(float value) {
  const float clamped = value < -1.0F ? -1.0F : (value > 1.0F ? 1.0F : value);
  return static_cast<uint8_t>(clamped * 127.5F + 128.0F);
}

/// Reads a PNG, JPEG or WebP, recognised by content: a contiguous float tensor [C, H, W] in [-1,
/// 1], where stored 0 is -1 and the largest stored value is 1.
///
/// C is 1 for grey and 3 for colour, palettes included, unless `channels` is 1, 3 or 4: colour
/// becomes grey as 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601, as in pillow), grey is repeated, and
/// the fourth channel is alpha, 1 if the file has none. 16-bit PNGs keep their precision. Otherwise
/// alpha and transparent colours are dropped; gamma, colour profiles and EXIF's orientation are not
/// applied; CMYK is converted to RGB without a profile. A WebP needs libwebp.
///
/// Throws Error with the path when the file cannot be read, is no PNG, JPEG or WebP, is damaged,
/// ends too early or has more than kMostPixels.
at::Tensor read_image(const std::string& path, int64_t channels = 0);

/// The image as stored, if it has 8 bits and the requested number of channels: uint8 [C, H, W] with
/// a pixel's channels adjacent in memory, which LibTorch resizes several times faster than floats.
/// Any other image is read like read_image; the errors are the same.
at::Tensor read_stored_image(const std::string& path, int64_t channels = 0);

/// Converts an image of bytes, uint8 of any shape, to contiguous float in [-1, 1] like from_byte.
at::Tensor from_stored_image(const at::Tensor& bytes);

/// Reads a mask, a PNG of class numbers: int64 [H, W]. A grey pixel is the number that is stored,
/// of 1 to 16 bits; a pixel with a palette is its place there, whatever the colour, as in Pascal
/// VOC. An image in colours, or a JPEG, whose numbers are not those that were written, is an Error;
/// the others are as in read_image.
at::Tensor read_mask(const std::string& path);

/// The same for the bytes of a file; errors begin with `name`.
at::Tensor decode_mask(std::string_view bytes, const std::string& name);

/// The same as read_image for the bytes of a file; errors begin with `name`.
at::Tensor decode_image(std::string_view bytes, const std::string& name, int64_t channels = 0);

/// Pixels as stored: [height, width, channels], two bytes each when `is_16_bit`.
struct Pixels {
  size_t height = 0;
  size_t width = 0;
  size_t channels = 0;
  bool is_16_bit = false;
  std::vector<unsigned char> bytes;

  /// The number of the byte, or of the two bytes, at `i`.
  uint16_t number_at(size_t i) const {
    if (!is_16_bit) return bytes[i];
    uint16_t number = 0;
    std::memcpy(&number, bytes.data() + 2 * i, 2);
    return number;
  }
  size_t row_bytes() const { return width * channels * (is_16_bit ? 2 : 1); }
  std::vector<unsigned char*> rows() {
    std::vector<unsigned char*> starts(height);
    for (size_t y = 0; y < height; ++y) starts[y] = bytes.data() + y * row_bytes();
    return starts;
  }
};

/// The pixels of a whole PNG or JPEG file: 1 channel for grey, else 3; 8 bits, or 16 for some PNGs.
/// With `has_alpha`, 3 channels, or 4 when the PNG has alpha or transparent colours. Throws Error
/// that begins with `name`, also for a header with more pixels than the file can hold and for more
/// than kMostPixels, before memory is allocated for them.
Pixels decode_png(std::string_view bytes, const std::string& name, bool has_alpha = false);
Pixels decode_jpeg(std::string_view bytes, const std::string& name);
/// Whether a file begins as a WebP does.
inline bool is_webp(std::string_view bytes) {
  return bytes.size() >= 12 && bytes.starts_with("RIFF") && bytes.substr(8).starts_with("WEBP");
}

/// The pixels of a whole WebP file, with losses or without: 3 channels, or with `has_alpha` 4.
/// Throws Error that begins with `name`, also for a moving picture, for more than kMostPixels, and
/// with how libwebp is installed when it cannot be loaded.
Pixels decode_webp(std::string_view bytes, const std::string& name, bool has_alpha = false);

/// The numbers of a PNG as they are stored: 1 channel for grey and for a palette, whose colours are
/// not looked up; alpha is dropped.
Pixels decode_png_numbers(std::string_view bytes, const std::string& name);

/// Throws Error unless `encode_png` accepts `picture`; `what` names the result, `a PNG`.
void check_picture(const at::Tensor& picture, const char* what);
/// Pointers to the rows of a contiguous picture. The libraries only read the rows, through pointers
/// that are not const.
std::vector<unsigned char*> rows_of(const at::Tensor& picture);

/// The uint8 picture [H, W, C] on the CPU, C = 1 (grey) or 3 (RGB), as the bytes of a PNG file.
/// Throws Error for other shapes and types. The compression is fast rather than small.
std::string encode_png(const at::Tensor& picture);

/// The file format of images.
struct ImageEncoding {
  static constexpr int kDefaultQuality = 90;

  bool is_jpeg = false;           ///< Otherwise PNG, which is lossless.
  int quality = kDefaultQuality;  ///< The quality of a JPEG, 1 to 100.
};

/// The same as a JPEG with libjpeg's `quality`: small but lossy. A side has at most 65,500 pixels.
std::string encode_jpeg(const at::Tensor& picture, int quality);
std::string encode_image(const at::Tensor& picture, const ImageEncoding& encoding);

/// The contents of a PNG or JPEG file's header, read without decoding the image.
struct ImageHead {
  bool is_jpeg = false;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;  ///< 1 or 3, as for encode_image.
};
/// Returns nothing for other bytes.
std::optional<ImageHead> image_head(std::string_view bytes);

/// The ending of a file with these bytes: `.png` or `.jpg`.
const char* image_ending(std::string_view bytes);
/// Whether a file with this ending, such as `.png`, is an image.
bool is_image_ending(std::string_view ending);

}  // namespace stepop
