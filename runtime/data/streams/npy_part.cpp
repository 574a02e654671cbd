#include "runtime/data/streams/npy_part.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/error.h"

namespace stepop {
namespace {

constexpr std::string_view kNumpy = "\x93NUMPY";

/// What stands in the head behind a key: `'<f4'`, `False`, `(2, 3)`.
std::string_view head_value(std::string_view head, std::string_view key) {
  const size_t found = head.find(fmt::format("'{}':", key));
  if (found == std::string_view::npos) throw Error(fmt::format("no .npy: its head has no {}", key));
  std::string_view rest = head.substr(found + key.size() + 3);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  const char end = rest.starts_with('(') ? ')' : ',';
  return rest.substr(0, rest.find(end));
}

at::ScalarType npy_type(std::string_view descr) {
  constexpr std::pair<std::string_view, at::ScalarType> kNpyTypes[] = {
      {"'|b1'", at::kBool},  {"'|u1'", at::kByte},  {"'|i1'", at::kChar},
      {"'<i2'", at::kShort}, {"'<i4'", at::kInt},   {"'<i8'", at::kLong},
      {"'<f2'", at::kHalf},  {"'<f4'", at::kFloat}, {"'<f8'", at::kDouble}};
  for (const auto& [name, type] : kNpyTypes) {
    if (name == descr) return type;
  }
  throw Error(fmt::format("an array of the type {}, which no tensor holds", descr));
}

std::vector<int64_t> npy_shape(std::string_view text) {
  std::vector<int64_t> shape;
  constexpr size_t kMostDimensions = 32;
  while (shape.size() < kMostDimensions) {
    text.remove_prefix(std::min(text.find_first_of("0123456789"), text.size()));
    if (text.empty()) break;
    int64_t length = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), length);
    if (failed != std::errc()) throw Error("no .npy: its shape has a number that is too large");
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    shape.push_back(length);
  }
  return shape;
}

}  // namespace

at::Tensor decode_npy(std::string_view bytes) {
  constexpr size_t kBegin = 10;
  if (!bytes.starts_with(kNumpy) || bytes.size() < kBegin + 2) throw Error("no .npy file");
  const auto byte = [&](size_t at) { return static_cast<size_t>(static_cast<uint8_t>(bytes[at])); };
  const bool is_long = byte(kNumpy.size()) > 1;
  size_t head_size = byte(8) + (byte(9) << 8);
  if (is_long) head_size += (byte(10) << 16) + (byte(11) << 24);
  const size_t begin = is_long ? kBegin + 2 : kBegin;
  if (head_size > bytes.size() - begin) throw Error("no .npy: cut short in its head");
  const std::string_view head = bytes.substr(begin, head_size);
  const at::ScalarType type = npy_type(head_value(head, "descr"));
  const std::vector<int64_t> shape = npy_shape(head_value(head, "shape"));
  if (head_value(head, "fortran_order") != "False" && shape.size() > 1) {
    throw Error("an array in Fortran's order; save it with np.ascontiguousarray");
  }
  bytes.remove_prefix(begin + head_size);
  uint64_t size = c10::elementSize(type);
  for (const int64_t length : shape) {
    if (length != 0 && size > bytes.size() / static_cast<uint64_t>(length)) {
      throw Error(
          fmt::format("no .npy: cut short, {} bytes are too few for its shape", bytes.size()));
    }
    size *= static_cast<uint64_t>(length);
  }
  if (size > bytes.size()) throw Error("no .npy: cut short");
  at::Tensor tensor = at::empty(shape, type);
  if (size > 0) std::memcpy(tensor.mutable_data_ptr(), bytes.data(), size);
  return tensor;
}

}  // namespace stepop
