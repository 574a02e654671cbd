#include "runtime/optim/names.h"

#include <fmt/format.h>

namespace stepop {

std::string list_some(const std::vector<std::string>& texts, std::string_view separator) {
  constexpr size_t kLongest = 10;
  std::string list;
  for (size_t i = 0; i < texts.size() && i < kLongest; ++i) {
    if (i > 0) list += separator;
    list += texts[i];
  }
  if (texts.size() > kLongest) list += fmt::format(" and {} more", texts.size() - kLongest);
  return list;
}

std::string list_names(const NamedParameters& parameters) {
  std::vector<std::string> names;
  for (const auto& entry : parameters) names.push_back(entry.first);
  return list_some(names);
}

}  // namespace stepop
