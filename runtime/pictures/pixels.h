#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stepop {

/// Pixels as they are stored: [height, width, channels], two bytes each when `is_16_bit`.
struct Pixels {
  size_t height = 0;
  size_t width = 0;
  size_t channels = 0;
  bool is_16_bit = false;
  std::vector<unsigned char> bytes;

  size_t row_bytes() const { return width * channels * (is_16_bit ? 2 : 1); }
  std::vector<unsigned char*> rows() {
    std::vector<unsigned char*> starts(height);
    for (size_t y = 0; y < height; ++y) starts[y] = bytes.data() + y * row_bytes();
    return starts;
  }
};

/// The pixels of a whole PNG or JPEG file: 1 channel for grey, else 3; 8 bits, a PNG also 16.
/// Throws Error that begins with `name`.
Pixels decode_png(std::string_view bytes, const std::string& name);
Pixels decode_jpeg(std::string_view bytes, const std::string& name);

}  // namespace stepop
