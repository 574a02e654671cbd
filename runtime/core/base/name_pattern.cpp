#include "runtime/core/base/name_pattern.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"

namespace stepop {
namespace {

const std::string& checked_length(const std::string& pattern) {
  if (pattern.size() > NamePattern::kMostBytes) {
    throw Error(
        fmt::format("it has {} characters; {} at most", pattern.size(), NamePattern::kMostBytes));
  }
  return pattern;
}

}  // namespace

NamePattern::NamePattern(const std::string& pattern, std::string source)
    : source_(std::move(source)), pattern_(checked_length(pattern)), expression_(pattern) {}

bool NamePattern::is_in(std::string_view name) const {
  try {
    return expression_.is_in(name);
  } catch (const Error& error) {
    throw Error(fmt::format("{} {} and the name {}: {}", source_, shortened(pattern_, 80),
                            shortened(name, 80), error.what()));
  }
}

}  // namespace stepop
