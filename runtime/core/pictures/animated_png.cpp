#include "runtime/core/pictures/animated_png.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/core/pictures/image_file.h"

namespace stepop {
namespace {

constexpr std::string_view kPngSignature = "\x89PNG\r\n\x1a\n";

std::string big_endian(uint32_t number, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(number >> (8 * i) & 0xff);
  return text;
}

uint32_t number_at(std::string_view bytes, size_t at) {
  uint32_t number = 0;
  for (size_t i = 0; i < 4; ++i) number = number << 8 | static_cast<unsigned char>(bytes[at + i]);
  return number;
}

/// A chunk in the file's format: length, type, data, and the checksum of type and data.
std::string png_chunk(const std::string& type, std::string_view data) {
  const std::string body = type + std::string(data);
  const auto sum =
      ::crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big_endian(static_cast<uint32_t>(data.size()), 4) + body +
         big_endian(static_cast<uint32_t>(sum), 4);
}

/// The data of all chunks of one type in a PNG from `encode_png`.
std::vector<std::string_view> chunks_of(std::string_view png, std::string_view type) {
  std::vector<std::string_view> found;
  for (size_t at = kPngSignature.size(); at + 12 <= png.size();) {
    const size_t length = number_at(png, at);
    if (png.substr(at + 4, 4) == type) found.push_back(png.substr(at + 8, length));
    at += length + 12;
  }
  return found;
}

/// The time that each frame is shown: a fraction of a second with 16-bit parts.
std::string delay_of(double frames_per_second) {
  const auto milliseconds = std::clamp(std::round(1000 / frames_per_second), 1.0, 65535.0);
  return big_endian(static_cast<uint32_t>(milliseconds), 2) + big_endian(1000, 2);
}

}  // namespace

std::string encode_animated_png(const std::vector<at::Tensor>& frames, double frames_per_second) {
  if (frames.empty()) throw Error("an animated PNG needs at least one frame");
  bool is_colour = false;
  for (const auto& frame : frames) {
    check_picture(frame, "a frame of an animated PNG");
    is_colour = is_colour || frame.size(2) == 3;
    if (frame.size(0) == frames[0].size(0) && frame.size(1) == frames[0].size(1)) continue;
    throw Error(fmt::format("frames of an animated PNG have one size, found {} and {}",
                            describe_tensor(frames[0]), describe_tensor(frame)));
  }
  const std::string height = big_endian(static_cast<uint32_t>(frames[0].size(0)), 4);
  const std::string width = big_endian(static_cast<uint32_t>(frames[0].size(1)), 4);
  std::string bytes;
  uint32_t sequence = 0;  // counts fcTL and fdAT chunks together
  for (const auto& frame : frames) {
    const bool becomes_colour = is_colour && frame.size(2) == 1;
    const std::string png = encode_png(
        becomes_colour ? frame.expand({frame.size(0), frame.size(1), 3}).contiguous() : frame);
    const bool is_first = bytes.empty();
    if (is_first) {
      bytes = std::string(kPngSignature) + png_chunk("IHDR", chunks_of(png, "IHDR").at(0));
      const auto count = big_endian(static_cast<uint32_t>(frames.size()), 4);
      bytes += png_chunk("acTL", count + big_endian(0, 4));  // 0: plays forever
    }
    const std::string no_offset(8, '\0');
    const std::string replaces_all(2, '\0');  // no disposal, no blending
    bytes += png_chunk("fcTL", big_endian(sequence++, 4) + width + height + no_offset +
                                   delay_of(frames_per_second) + replaces_all);
    for (const std::string_view data : chunks_of(png, "IDAT")) {
      bytes += is_first ? png_chunk("IDAT", data)
                        : png_chunk("fdAT", big_endian(sequence++, 4) + std::string(data));
    }
  }
  return bytes + png_chunk("IEND", "");
}

}  // namespace stepop
