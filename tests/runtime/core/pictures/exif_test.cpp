#include "runtime/core/pictures/exif.h"

#include <ATen/ops/arange.h>
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "runtime/core/formats/gzip_file.h"
#include "tests/places.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace exif_test {

const std::string kFolder = STEPOP_SOURCE_DIR "/tests/data/images/";

/// A TIFF header with the tag 0x0112 behind another one, in either order of bytes.
std::string tiff(int orientation, bool is_little_endian, int type = 3) {
  const auto number = [&](int value, int size) {
    std::string bytes;
    for (int i = 0; i < size; ++i) {
      const int shift = 8 * (is_little_endian ? i : size - 1 - i);
      bytes += static_cast<char>(value >> shift & 255);
    }
    return bytes;
  };
  const auto entry = [&](int tag, int kind, int value) {
    return number(tag, 2) + number(kind, 2) + number(1, 4) + number(value, 2) + number(0, 2);
  };
  return (is_little_endian ? "II" : "MM") + number(42, 2) + number(8, 4) + number(2, 2) +
         entry(0x0100, 3, 640) + entry(0x0112, type, orientation) + number(0, 4);
}

/// The beginning of a JPEG with a segment before that of EXIF.
std::string jpeg(const std::string& exif) {
  const std::string content = std::string("Exif\0\0", 6) + exif;
  const auto size = static_cast<int>(content.size()) + 2;
  return std::string("\xff\xd8\xff\xe0\x00\x04JF\xff\xe1", 10) + static_cast<char>(size >> 8) +
         static_cast<char>(size & 255) + content + "\xff\xda";
}

TEST_CASE("the orientation is read in either order of bytes") {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    CHECK(exif_orientation(jpeg(tiff(orientation, true))) == orientation);
    CHECK(exif_orientation(jpeg(tiff(orientation, false))) == orientation);
  }
}

TEST_CASE("what means nothing, or is cut short, is upright") {
  CHECK(exif_orientation(jpeg(tiff(0, true))) == kUpright);
  CHECK(exif_orientation(jpeg(tiff(9, true))) == kUpright);
  CHECK(exif_orientation(jpeg(tiff(6, true, /*type=*/4))) == kUpright);
  CHECK(exif_orientation("GIF89a") == kUpright);
  CHECK(exif_orientation("RIFF") == kUpright);
  CHECK(exif_orientation_of_file("/no/such/file.jpg") == kUpright);
  const std::string whole = jpeg(tiff(6, false));
  for (size_t size = 0; size < whole.size(); ++size) {
    const int orientation = exif_orientation(whole.substr(0, size));
    CHECK((orientation == kUpright || orientation == 6));
  }
  CHECK(exif_orientation(whole.substr(0, 40)) == kUpright);
}

TEST_CASE("Pillow's files have the orientation that Pillow wrote") {
  for (const char* name : {"sideways.jpg", "sideways.png", "sideways.webp"}) {
    CAPTURE(name);
    CHECK(exif_orientation(read_plain_or_gzip(kFolder + name)) == 6);
    CHECK(exif_orientation_of_file(kFolder + name) == 6);
  }
  for (const char* name : {"rgb.jpg", "thumbnail.jpg", "rgb-8.png", "rgb-lossless.webp"}) {
    CAPTURE(name);
    CHECK(exif_orientation_of_file(kFolder + name) == kUpright);
  }
}

TEST_CASE("an image is turned as by Pillow's exif_transpose") {
  const at::Tensor image = at::arange(6, at::kFloat).reshape({1, 2, 3});
  // PIL.ImageOps.exif_transpose of [[0, 1, 2], [3, 4, 5]] with each orientation, Pillow 13.
  const std::map<int, std::vector<float>> expected = {
      {1, {0, 1, 2, 3, 4, 5}}, {2, {2, 1, 0, 5, 4, 3}}, {3, {5, 4, 3, 2, 1, 0}},
      {4, {3, 4, 5, 0, 1, 2}}, {5, {0, 3, 1, 4, 2, 5}}, {6, {3, 0, 4, 1, 5, 2}},
      {7, {5, 2, 4, 1, 3, 0}}, {8, {2, 5, 1, 4, 0, 3}}};
  for (const auto& [orientation, values] : expected) {
    CAPTURE(orientation);
    const at::Tensor upright = turned_upright(image, orientation);
    CHECK(values_of<float>(upright) == values);
    CHECK(upright.size(1) == (orientation < 5 ? 2 : 3));
  }
}

}  // namespace exif_test
}  // namespace stepop
