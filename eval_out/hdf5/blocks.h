#pragma once

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace stepop {

/// What is read of an array at once, about: so much takes little memory and few calls.
inline constexpr int64_t kBlockBytes = 8'000'000;

/// How many rows of this shape and type a block has, at least 1.
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
