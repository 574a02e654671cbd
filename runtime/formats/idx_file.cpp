#include "runtime/formats/idx_file.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/formats/gzip_file.h"

namespace stepop {
namespace {

at::ScalarType scalar_type(unsigned char code, const std::string& path) {
  switch (code) {
    case 0x08:
      return at::kByte;
    case 0x09:
      return at::kChar;
    case 0x0b:
      return at::kShort;
    case 0x0c:
      return at::kInt;
    case 0x0d:
      return at::kFloat;
    case 0x0e:
      return at::kDouble;
    default:
      break;
  }
  throw Error(
      fmt::format("{}: IDX type 0x{:02x} is unknown; the format has 0x08 (uint8), 0x09 "
                  "(int8), 0x0b (int16), 0x0c (int32), 0x0d (float32), 0x0e (float64)",
                  path, code));
}

/// The bytes that the data needs; the largest number when that is more than can be counted.
size_t data_size(const std::vector<int64_t>& shape, size_t item_size) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  size_t size = item_size;
  for (const int64_t length : shape) {
    if (__builtin_mul_overflow(size, static_cast<size_t>(length), &size)) {
      return std::numeric_limits<size_t>::max();
    }
  }
  return size;
}

void copy_reversing_items(const unsigned char* source, unsigned char* target, size_t size,
                          size_t item_size) {
  for (size_t i = 0; i < size; i += item_size) {
    std::reverse_copy(source + i, source + i + item_size, target + i);
  }
}

}  // namespace

at::Tensor read_idx(const std::string& path) {
  const std::string content = read_plain_or_gzip(path);
  const auto* bytes = reinterpret_cast<const unsigned char*>(content.data());
  if (content.empty()) throw Error(fmt::format("{}: expected an IDX file, it is empty", path));
  if (bytes[0] != 0 || (content.size() > 1 && bytes[1] != 0)) {
    throw Error(
        fmt::format("{}: expected an IDX file, which begins with the bytes 00 00, found {:02x}",
                    path, fmt::join(bytes, bytes + std::min<size_t>(content.size(), 4), " ")));
  }
  const size_t header_size = content.size() < 4 ? 4 : 4 + 4 * size_t{bytes[3]};
  if (content.size() < header_size) {
    throw Error(fmt::format("{}: cut short: its IDX header needs {} bytes, found {}", path,
                            header_size, content.size()));
  }
  const at::ScalarType type = scalar_type(bytes[2], path);
  std::vector<int64_t> shape;
  for (size_t i = 4; i < header_size; i += 4) {
    shape.push_back(int64_t{bytes[i]} << 24 | int64_t{bytes[i + 1]} << 16 |
                    int64_t{bytes[i + 2]} << 8 | int64_t{bytes[i + 3]});
  }
  const size_t item_size = c10::elementSize(type);
  const size_t expected = data_size(shape, item_size);
  const size_t found = content.size() - header_size;
  if (found != expected) {
    throw Error(fmt::format("{}: {}: {} [{}] needs {} bytes after the header, found {}", path,
                            found < expected ? "cut short" : "longer than its header says",
                            c10::getDtypeNames(type).first, fmt::join(shape, ", "), expected,
                            found));
  }
  at::Tensor data = at::empty(shape, type);
  auto* target = static_cast<unsigned char*>(data.mutable_data_ptr());
  if (item_size == 1 || std::endian::native == std::endian::big) {
    if (found > 0) std::memcpy(target, bytes + header_size, found);
  } else {
    copy_reversing_items(bytes + header_size, target, found, item_size);
  }
  return data;
}

}  // namespace stepop
