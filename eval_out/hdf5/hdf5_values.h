#pragma once

// The parts of HDF5 support that need neither the library nor its header: the values of attributes,
// the texts of types and shapes in messages, and the blocks in which rows are read.

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace stepop {

/// The value of an attribute. A file of evaluation outputs has `global_step`, `split`, `config`,
/// ...
using Attribute = std::variant<bool, int64_t, double, std::string>;

/// `float32`, `int64`, `bool`: NumPy's names.
std::string type_name(at::ScalarType type);

/// `[3, 256, 256]`
std::string shape_text(const std::vector<int64_t>& shape);

/// `rows 64 to 127`
std::string rows_text(int64_t first, size_t count);

/// About how much of an array is read at once: this size takes little memory and few calls.
inline constexpr int64_t kBlockBytes = 8'000'000;

/// The number of rows of this shape and type in a block, at least 1.
inline int64_t rows_of_block(const std::vector<int64_t>& shape, at::ScalarType dtype) {
  auto bytes = static_cast<int64_t>(c10::elementSize(dtype));
  for (const int64_t length : shape) bytes *= length;
  return std::max<int64_t>(kBlockBytes / std::max<int64_t>(bytes, 1), 1);
}

/// Calls `look(first, count)` for all rows, at most `block` at a time.
template <class Look>
void for_each_block(int64_t rows, int64_t block, const Look& look) {
  for (int64_t first = 0; first < rows; first += block) look(first, std::min(block, rows - first));
}

}  // namespace stepop
