#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

namespace stepop {

/// Lists longer than this are cut in messages.
inline constexpr size_t kMostListed = 10;

/// The first names of a list, each after `separator`, and how many there are more.
inline std::string short_lines(const std::vector<std::string>& names, const char* separator) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < kMostListed; ++i) text += separator + names[i];
  if (names.size() > kMostListed) {
    text += fmt::format("{}and {} more", separator, names.size() - kMostListed);
  }
  return text;
}

/// `a, b, c`, or `a, b, c and 12 more`.
inline std::string short_list(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < kMostListed; ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > kMostListed) text += fmt::format(" and {} more", names.size() - kMostListed);
  return text;
}

}  // namespace stepop
