#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/unicode.h"
#include "runtime/data/text/json_part.h"
#include "runtime/data/text/split_pattern.h"
#include "runtime/data/text/text_steps.h"

namespace stepop {
namespace {

std::string stripped(std::string_view text, bool left, bool right) {
  size_t first = 0;
  size_t end = text.size();
  while (left && first < end) {
    size_t next = first;
    if (!is_white_space(next_character(text, next))) break;
    first = next;
  }
  while (right && end > first) {
    size_t last = cut_position(text, end - 1);
    size_t next = last;
    if (!is_white_space(next_character(text, next))) break;
    end = last;
  }
  return std::string(text.substr(first, end - first));
}

std::string replaced_matches(const SplitPattern& pattern, std::string_view text,
                             std::string_view by) {
  std::string out;
  size_t done = 0;
  int64_t budget = SplitPattern::budget_for(text);
  for (size_t from = 0; from <= text.size();) {
    const auto found = pattern.find(text, from, budget);
    if (!found) break;
    out += text.substr(done, found->first - done);
    out += by;
    done = found->second;
    from = std::max(found->second, found->first + 1);
  }
  return out += text.substr(done);
}

Normalizer read_replace(const JsonPart& part) {
  const auto by = part.text("content");
  const JsonPart pattern = part.at("pattern");
  if (pattern.has("String")) {
    const auto what = pattern.text("String");
    if (what.empty()) throw pattern.error("an empty text cannot be replaced");
    return [=](const std::string& text) { return replaced_text(text, what, by); };
  }
  const auto compiled = std::make_shared<SplitPattern>(pattern.text("Regex"));
  return [=](const std::string& text) { return replaced_matches(*compiled, text, by); };
}

}  // namespace

std::string replaced_text(std::string_view text, std::string_view what, std::string_view by) {
  std::string out;
  size_t from = 0;
  for (size_t at = 0; (at = text.find(what, from)) != std::string_view::npos;) {
    out += text.substr(from, at - from);
    out += by;
    from = at + what.size();
  }
  return out += text.substr(from);
}

Normalizer read_normalizer(const JsonPart& part) {
  const auto type = part.text("type");
  if (type == "NFC") return [](const std::string& text) { return nfc(text); };
  if (type == "NFD") return [](const std::string& text) { return nfd(text); };
  if (type == "Lowercase") return [](const std::string& text) { return lower_case(text); };
  if (type == "Replace") return read_replace(part);
  if (type == "Strip") {
    const bool left = part.flag("strip_left", true);
    const bool right = part.flag("strip_right", true);
    return [=](const std::string& text) { return stripped(text, left, right); };
  }
  if (type == "Prepend") {
    const auto what = part.text("prepend");
    return [=](const std::string& text) { return text.empty() ? text : what + text; };
  }
  if (type == "Sequence") {
    std::vector<Normalizer> steps;
    for (const auto& item : part.at("normalizers").items()) steps.push_back(read_normalizer(item));
    return [=](std::string text) {
      for (const auto& step : steps) text = step(std::move(text));
      return text;
    };
  }
  throw part.unsupported(type, "NFC, NFD, Lowercase, Replace, Strip, Prepend, Sequence");
}

}  // namespace stepop
