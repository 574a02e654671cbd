#include "runtime/core/pictures/exif.h"

#include <ATen/ops/flip.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <optional>

#include "runtime/core/pictures/image_file.h"

namespace stepop {
namespace {

constexpr std::string_view kExifMark{"Exif\0\0", 6};
constexpr int kMostOrientation = 8;
/// Metadata lie before the pixels: a JPEG's segment has at most 64 KiB, and a few may precede it.
constexpr size_t kMostHeadBytes = 64 << 10;

/// A whole number of `size` bytes at `at`; nothing behind the end.
std::optional<uint32_t> number_at(std::string_view bytes, size_t at, size_t size,
                                  bool is_little_endian) {
  if (at > bytes.size() || bytes.size() - at < size) return std::nullopt;
  uint32_t number = 0;
  for (size_t i = 0; i < size; ++i) {
    const size_t place = is_little_endian ? at + size - 1 - i : at + i;
    number = number << 8 | static_cast<unsigned char>(bytes[place]);
  }
  return number;
}

/// Looks the tag up in the first directory of a TIFF header, which is what EXIF is.
int orientation_in_tiff(std::string_view tiff) {
  constexpr size_t kEntryBytes = 12;
  constexpr uint32_t kTag = 0x0112;
  constexpr uint32_t kShort = 3;
  const bool is_little_endian = tiff.starts_with("II");
  if (!is_little_endian && !tiff.starts_with("MM")) return kUpright;
  const auto number = [&](size_t at, size_t size) {
    return number_at(tiff, at, size, is_little_endian);
  };
  const auto directory = number(4, 4);
  const auto entries = directory ? number(*directory, 2) : std::nullopt;
  for (size_t i = 0; entries && i < *entries; ++i) {
    const size_t entry = *directory + 2 + i * kEntryBytes;
    const auto tag = number(entry, 2);
    if (!tag) return kUpright;
    if (*tag != kTag || number(entry + 2, 2) != kShort) continue;
    const auto orientation = number(entry + 8, 2);
    const bool has_meaning =
        orientation && *orientation >= kUpright && *orientation <= uint32_t{kMostOrientation};
    return has_meaning ? static_cast<int>(*orientation) : kUpright;
  }
  return kUpright;
}

int orientation_in_exif(std::string_view exif) {
  return orientation_in_tiff(exif.starts_with(kExifMark) ? exif.substr(kExifMark.size()) : exif);
}

/// Looks for the segment APP1 that has EXIF (ITU-T T.81, B.1.1).
int orientation_in_jpeg(std::string_view bytes) {
  constexpr unsigned char kApp1 = 0xe1;
  constexpr unsigned char kScan = 0xda;
  for (size_t at = 2; at + 4 <= bytes.size() && bytes[at] == '\xff';) {
    const auto marker = static_cast<unsigned char>(bytes[at + 1]);
    const size_t length = *number_at(bytes, at + 2, 2, /*is_little_endian=*/false);
    if (marker == kScan || length < 2) return kUpright;
    const std::string_view segment = bytes.substr(at + 4, length - 2);
    if (marker == kApp1 && segment.starts_with(kExifMark)) return orientation_in_exif(segment);
    at += 2 + length;
  }
  return kUpright;
}

/// Looks for the chunk `name` among chunks that begin at `at`: PNG's have the length, the name, the
/// content and 4 bytes, RIFF's the name, the length and the content in an even number of bytes.
int orientation_in_chunks(std::string_view bytes, size_t at, std::string_view name, bool is_riff) {
  while (at + 8 <= bytes.size()) {
    const auto length = *number_at(bytes, at + (is_riff ? 4 : 0), 4, is_riff);
    const std::string_view found = bytes.substr(at + (is_riff ? 0 : 4), 4);
    if (found == name) return orientation_in_exif(bytes.substr(at + 8, length));
    at += 8 + size_t{length} + (is_riff ? length % 2 : 4);
  }
  return kUpright;
}

}  // namespace

int exif_orientation(std::string_view bytes) {
  if (bytes.starts_with("\xff\xd8\xff")) return orientation_in_jpeg(bytes);
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) {
    return orientation_in_chunks(bytes, 8, "eXIf", /*is_riff=*/false);
  }
  if (is_webp(bytes)) {
    return orientation_in_chunks(bytes, 12, "EXIF", /*is_riff=*/true);
  }
  return kUpright;
}

int exif_orientation_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string head(kMostHeadBytes, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(file.gcount()));
  if (is_webp(head)) head.append(std::istreambuf_iterator<char>(file), {});  // EXIF is at its end
  return exif_orientation(head);
}

at::Tensor turned_upright(const at::Tensor& image, int orientation) {
  if (orientation == kUpright) return image;
  const bool is_sideways = orientation >= 5;
  at::Tensor upright = is_sideways ? image.transpose(1, 2) : image;
  // What is left to do after the transposition.
  const bool flips_rows =
      orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  const bool flips_columns =
      orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  if (flips_rows) upright = at::flip(upright, {1});
  if (flips_columns) upright = at::flip(upright, {2});
  return upright.contiguous();
}

}  // namespace stepop
