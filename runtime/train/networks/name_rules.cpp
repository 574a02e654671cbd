#include "runtime/train/networks/name_rules.h"

namespace stepop {

std::optional<std::string> name_by_rules(const std::string& name, const NameRules& rules,
                                         std::vector<bool>* used) {
  if (!name.starts_with(rules.prefix)) return std::nullopt;
  const std::string rest = name.substr(rules.prefix.size());
  for (size_t i = 0; i < rules.map.size(); ++i) {
    const auto& [old_begin, new_begin] = rules.map[i];
    if (!rest.starts_with(old_begin)) continue;
    if (used != nullptr) (*used)[i] = true;
    return new_begin + rest.substr(old_begin.size());
  }
  return rest;
}

}  // namespace stepop
