#include "runtime/config/read_pattern.h"

#include <fmt/format.h>

#include <string>

#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace stepop {

NamePattern read_pattern(const Config& config, std::string_view path) {
  const auto text = config.get<std::string>(path);
  try {
    return NamePattern(text);
  } catch (const Error& error) {
    constexpr size_t kMostShown = 80;
    throw config.error(path, fmt::format("\"{}\" is not a regular expression: {}",
                                         shortened(text, kMostShown), error.what()));
  }
}

}  // namespace stepop
