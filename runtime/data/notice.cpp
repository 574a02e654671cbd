#include "runtime/data/notice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>
#include <utility>

namespace stepop {

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

std::string joined_notices(const std::vector<std::string>& notices) {
  std::vector<std::string> lines;
  for (const auto& notice : notices) {
    for (auto& line : lines_of(notice)) {
      const bool is_new = std::find(lines.begin(), lines.end(), line) == lines.end();
      if (is_new) lines.push_back(std::move(line));
    }
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

Notices split_notices(const std::string& notices) {
  std::vector<std::string> infos;
  std::vector<std::string> warnings;
  for (auto& line : lines_of(notices)) {
    const bool is_warning = line.starts_with(kWarning);
    if (is_warning) line.erase(0, kWarning.size());
    (is_warning ? warnings : infos).push_back(std::move(line));
  }
  return {fmt::format("{}", fmt::join(infos, "\n")), fmt::format("{}", fmt::join(warnings, "\n"))};
}

}  // namespace stepop
