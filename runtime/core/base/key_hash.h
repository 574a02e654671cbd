#pragma once

#include <cstddef>
#include <string_view>

namespace stepop {

/// A hash for the keys of tables. It differs between processes, so that no file can be made whose
/// keys collide; a table would need hours for such a file.
struct KeyHash {
  size_t operator()(std::string_view key) const;
};

}  // namespace stepop
