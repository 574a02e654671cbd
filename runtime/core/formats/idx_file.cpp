#include "runtime/core/formats/idx_file.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <string>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/formats/gzip_file.h"

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

/// The number of bytes of the data. Returns the largest number when the product of the lengths
/// overflows, even if another length is 0: no such tensor exists.
size_t data_size(const std::vector<int64_t>& shape, size_t item_size) {
  auto size = static_cast<int64_t>(item_size);
  for (const int64_t length : shape) {
    if (__builtin_mul_overflow(size, std::max<int64_t>(length, 1), &size)) {
      return std::numeric_limits<size_t>::max();
    }
  }
  const bool is_empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  return is_empty ? 0 : static_cast<size_t>(size);
}

void reverse_items(unsigned char* bytes, size_t size, size_t item_size) {
  for (size_t i = 0; i < size; i += item_size) std::reverse(bytes + i, bytes + i + item_size);
}

}  // namespace

at::Tensor read_idx(const std::string& path) {
  PlainOrGzip file(path);
  std::array<unsigned char, 4> head{};
  const size_t head_size = file.read(reinterpret_cast<char*>(head.data()), head.size());
  if (head_size == 0) throw Error(fmt::format("{}: expected an IDX file, it is empty", path));
  if (head[0] != 0 || head[1] != 0) {
    throw Error(
        fmt::format("{}: expected an IDX file, which begins with the bytes 00 00, found {:02x}",
                    path, fmt::join(head.begin(), head.begin() + head_size, " ")));
  }
  const size_t lengths_size = 4 * size_t{head[3]};
  std::vector<unsigned char> lengths(lengths_size);
  const size_t header_size = head_size + file.read(reinterpret_cast<char*>(lengths.data()),
                                                   head_size < head.size() ? 0 : lengths_size);
  if (header_size < head.size() + lengths_size) {
    throw Error(fmt::format("{}: cut short: its IDX header needs {} bytes, found {}", path,
                            head.size() + lengths_size, header_size));
  }
  const at::ScalarType type = scalar_type(head[2], path);
  std::vector<int64_t> shape;
  for (size_t i = 0; i < lengths_size; i += 4) {
    shape.push_back(int64_t{lengths[i]} << 24 | int64_t{lengths[i + 1]} << 16 |
                    int64_t{lengths[i + 2]} << 8 | int64_t{lengths[i + 3]});
  }
  const size_t item_size = c10::elementSize(type);
  const size_t expected = data_size(shape, item_size);
  const auto fail = [&](const std::string& problem, const std::string& found) {
    throw Error(fmt::format("{}: {}: {} [{}] needs {} bytes after the header, {}", path, problem,
                            c10::getDtypeNames(type).first, fmt::join(shape, ", "), expected,
                            found));
  };
  // This check comes before memory is allocated.
  const size_t most = file.most_bytes() - std::min<size_t>(file.most_bytes(), header_size);
  if (expected > most) {
    fail("cut short", fmt::format("{} {}", file.is_gzip() ? "the file can hold" : "found", most));
  }
  at::Tensor data = at::empty(shape, type);
  auto* target = static_cast<unsigned char*>(data.mutable_data_ptr());
  const size_t found = file.read(reinterpret_cast<char*>(target), expected);
  if (found < expected) fail("cut short", fmt::format("found {}", found));
  char more = 0;
  if (file.read(&more, 1) > 0) fail("longer than its header says", "found more");
  if (item_size > 1 && std::endian::native == std::endian::little) {
    reverse_items(target, expected, item_size);
  }
  return data;
}

}  // namespace stepop
