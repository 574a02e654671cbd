#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stepop {

/// How the names of a file become names of a network.
struct NameRules {
  /// Only tensors whose names begin with the prefix are taken; the prefix is removed.
  std::string prefix;
  /// Beginnings of names, after the prefix is removed, and their replacements. The first beginning
  /// that fits a name is replaced, once; an empty beginning fits every name.
  std::vector<std::pair<std::string, std::string>> map;
};

/// The name that `name` of a file gets by the rules; nothing for a name without the prefix. `used`,
/// when given, has an entry for each of `map`, and the one that was used is set.
std::optional<std::string> name_by_rules(const std::string& name, const NameRules& rules,
                                         std::vector<bool>* used = nullptr);

}  // namespace stepop
