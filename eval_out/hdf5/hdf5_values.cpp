#include "eval_out/hdf5/hdf5_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stepop {

std::string type_name(at::ScalarType type) { return std::string(c10::getDtypeNames(type).first); }

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string rows_text(int64_t first, size_t count) {
  if (count == 1) return fmt::format("row {}", first);
  return fmt::format("rows {} to {}", first, first + static_cast<int64_t>(count) - 1);
}

}  // namespace stepop
