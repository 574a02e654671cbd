#include "runtime/core/config/read_pattern.h"

#include <fmt/format.h>

#include <string>

#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"

namespace stepop {

NamePattern read_pattern(const Config& config, std::string_view path) {
  const auto text = config.get<std::string>(path);
  try {
    return NamePattern(text, config.error(path, "the pattern").what());
  } catch (const Error& error) {
    constexpr size_t kMostShown = 80;
    throw config.error(path, fmt::format("\"{}\" is not a regular expression: {}",
                                         shortened(text, kMostShown), error.what()));
  }
}

std::vector<NamePattern> read_patterns(const Config& config, std::string_view path) {
  const Value* found = config.peek(path);
  if (found == nullptr || !found->is_list()) return {read_pattern(config, path)};
  std::vector<NamePattern> patterns;
  for (size_t i = 0; i < found->as_list().size(); ++i) {
    patterns.push_back(read_pattern(config, fmt::format("{}/{}", path, i)));
  }
  if (patterns.empty()) throw config.error(path, "expected a regular expression, found none");
  return patterns;
}

std::vector<size_t> find_names(const NamePattern& pattern, const std::vector<std::string>& names,
                               const std::vector<std::string>& others) {
  std::vector<size_t> found;
  for (const auto* form : {&names, &others}) {
    for (size_t i = 0; i < form->size(); ++i) {
      if (pattern.is_in((*form)[i])) found.push_back(i);
    }
    if (!found.empty()) break;
  }
  return found;
}

}  // namespace stepop
