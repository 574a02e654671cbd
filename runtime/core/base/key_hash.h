#pragma once

#include <cstddef>
#include <string_view>

namespace stepop {

/// A hash for the keys of tables. It differs between processes, so nobody can write a file of keys
/// that collide, with which a table takes hours.
struct KeyHash {
  size_t operator()(std::string_view key) const;
};

}  // namespace stepop
