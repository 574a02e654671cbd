#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace stepop {

/// The indices first, first + 1, ..., as a loader gives them with a batch.
inline std::vector<int64_t> index_range(int64_t first, int64_t count) {
  std::vector<int64_t> indices(static_cast<size_t>(count));
  std::iota(indices.begin(), indices.end(), first);
  return indices;
}

}  // namespace stepop
