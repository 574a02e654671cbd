#include "runtime/core/base/text.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>

namespace stepop {
namespace {

constexpr std::string_view kCut = "...";

/// `count` characters of `text`, starting at character `begin`.
std::string characters(std::string_view text, size_t begin, size_t count) {
  std::string part;
  size_t at = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i > 0 && !is_inside_character(text[i])) ++at;
    if (at >= begin && at < begin + count) part += text[i];
  }
  return part;
}

std::string cut_in_the_middle(const std::string& name, size_t most) {
  const size_t width = text_width(name);
  if (width <= most || most < kCut.size() + 2) return name;
  const size_t tail = (most - kCut.size() + 1) / 2;
  const size_t head = most - kCut.size() - tail;
  return characters(name, 0, head) + std::string(kCut) + characters(name, width - tail, tail);
}

}  // namespace

std::string list_text(const std::vector<std::string>& names, size_t most) {
  if (names.empty()) return "none";
  std::string text;
  for (size_t i = 0; i < names.size() && i < most; ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > most) text += fmt::format(" and {} more", names.size() - most);
  return text;
}

std::string list_lines(const std::vector<std::string>& names, std::string_view separator,
                       size_t most) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < most; ++i) text.append(separator).append(names[i]);
  if (names.size() > most) text += fmt::format("{}and {} more", separator, names.size() - most);
  return text;
}

size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const size_t length = lead < 0x80   ? 1
                        : lead < 0xc2 ? 0
                        : lead < 0xe0 ? 2
                        : lead < 0xf0 ? 3
                        : lead < 0xf5 ? 4
                                      : 0;
  if (length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (!is_inside_character(text[i])) return 0;
  }
  const bool is_overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool is_beyond = (lead == 0xed && byte(1) > 0x9f) || (lead == 0xf4 && byte(1) > 0x8f);
  return is_overlong || is_beyond ? 0 : length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

size_t cut_position(std::string_view text, size_t at) {
  if (at >= text.size()) return text.size();
  while (at > 0 && is_inside_character(text[at])) --at;
  return at;
}

std::string shortened(std::string_view text, size_t most_bytes, std::string_view mark) {
  if (text.size() <= most_bytes) return std::string(text);
  return std::string(text.substr(0, cut_position(text, most_bytes))).append(mark);
}

size_t text_width(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !is_inside_character(c); }));
}

std::vector<std::string> shortened_names(const std::vector<std::string>& names, size_t most) {
  std::map<std::string, std::set<std::string>> by_short_name;
  for (const auto& name : names) by_short_name[cut_in_the_middle(name, most)].insert(name);
  std::vector<std::string> result;
  for (const auto& name : names) {
    const std::string short_name = cut_in_the_middle(name, most);
    result.push_back(by_short_name[short_name].size() > 1 ? name : short_name);
  }
  return result;
}

std::vector<std::string> short_paths(const std::vector<std::string>& paths) {
  std::map<std::string, std::set<std::string>> by_end;
  for (const auto& path : paths) {
    for (size_t slash = path.rfind('/'); slash != std::string::npos && slash > 0;
         slash = path.rfind('/', slash - 1)) {
      by_end[path.substr(slash + 1)].insert(path);
    }
    by_end[path].insert(path);
  }
  std::vector<std::string> result;
  for (const auto& path : paths) {
    std::string shortest = path;
    for (size_t slash = path.rfind('/'); slash != std::string::npos && slash > 0;
         slash = path.rfind('/', slash - 1)) {
      const std::string end = path.substr(slash + 1);
      // `0` of `hidden/0` would not identify the path.
      const bool is_number = end.find_first_not_of("0123456789") == std::string::npos;
      if (is_number || by_end[end].size() > 1) continue;
      shortest = end;
      break;
    }
    result.push_back(shortest);
  }
  return result;
}

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : name;
}

}  // namespace stepop
