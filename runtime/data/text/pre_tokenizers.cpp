#include <algorithm>
#include <memory>
#include <optional>
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

/// GPT-2's pattern.
constexpr const char* kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// How a splitter handles its matches and the texts between them.
enum class Behavior { kRemoved, kIsolated, kWithPrevious, kWithNext, kContiguous };

struct Part {
  size_t first;
  size_t end;
  bool is_match;
};

using Parts = std::vector<Part>;

void add_part(Parts& parts, size_t first, size_t end, bool is_match) {
  if (first < end) parts.push_back({first, end, is_match});
}

Parts find_parts(const SplitPattern& pattern, std::string_view text) {
  Parts parts;
  size_t done = 0;
  int64_t budget = SplitPattern::budget_for(text);
  for (size_t from = 0; from <= text.size();) {
    const auto found = pattern.find(text, from, budget);
    if (!found) break;
    add_part(parts, done, found->first, false);
    add_part(parts, found->first, found->second, true);
    done = found->second;
    from = std::max(found->second, found->first + 1);
  }
  add_part(parts, done, text.size(), false);
  return parts;
}

Parts find_parts(const std::string& what, std::string_view text) {
  Parts parts;
  size_t done = 0;
  for (size_t at = 0; (at = text.find(what, done)) != std::string_view::npos;) {
    add_part(parts, done, at, false);
    add_part(parts, at, at + what.size(), true);
    done = at + what.size();
  }
  add_part(parts, done, text.size(), false);
  return parts;
}

/// Finds each character for which `is_match` holds.
template <class Predicate>
Parts find_characters(std::string_view text, const Predicate& is_match) {
  Parts parts;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    if (!is_match(next_character(text, at))) continue;
    add_part(parts, done, begin, false);
    add_part(parts, begin, at, true);
    done = at;
  }
  add_part(parts, done, text.size(), false);
  return parts;
}

Parts joined(const Parts& parts, Behavior behavior) {
  Parts out;
  bool was_match = false;
  if (behavior == Behavior::kWithNext) {
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      if (part->is_match && !was_match && !out.empty()) {
        out.back().first = part->first;
      } else {
        out.push_back(*part);
      }
      was_match = part->is_match;
    }
    std::reverse(out.begin(), out.end());
    return out;
  }
  for (const auto& part : parts) {
    const bool joins = behavior == Behavior::kWithPrevious ? part.is_match && !was_match
                       : behavior == Behavior::kContiguous ? part.is_match == was_match
                                                           : false;
    const bool is_dropped = behavior == Behavior::kRemoved && part.is_match;
    if (joins && !out.empty()) {
      out.back().end = part.end;
    } else if (!is_dropped) {
      out.push_back(part);
    }
    was_match = part.is_match;
  }
  return out;
}

/// Cuts each piece into the parts that `find` returns for its text.
template <class Find>
PreTokenizer splitter(Find find, Behavior behavior) {
  return [=](const std::vector<Piece>& pieces) {
    std::vector<Piece> out;
    for (const auto& piece : pieces) {
      for (const auto& part : joined(find(piece.text), behavior)) {
        out.push_back({piece.text.substr(part.first, part.end - part.first),
                       piece.is_first && part.first == 0});
      }
    }
    return out;
  };
}

Behavior read_behavior(const JsonPart& part, const char* fallback) {
  const auto name = part.text("behavior", fallback);
  if (name == "Removed") return Behavior::kRemoved;
  if (name == "Isolated") return Behavior::kIsolated;
  if (name == "MergedWithPrevious") return Behavior::kWithPrevious;
  if (name == "MergedWithNext") return Behavior::kWithNext;
  if (name == "Contiguous") return Behavior::kContiguous;
  throw part.unsupported(name, "Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous");
}

PreTokenizer read_split(const JsonPart& part) {
  const Behavior behavior = read_behavior(part, "");
  const bool inverts = part.flag("invert", false);
  const auto finish = [inverts](Parts parts) {
    for (auto& one : parts) one.is_match = one.is_match != inverts;
    return parts;
  };
  const JsonPart pattern = part.at("pattern");
  if (pattern.has("String")) {
    const auto what = pattern.text("String");
    if (what.empty()) throw pattern.error("a text cannot be split at an empty one");
    return splitter([=](const std::string& text) { return finish(find_parts(what, text)); },
                    behavior);
  }
  const auto compiled = std::make_shared<SplitPattern>(pattern.text("Regex"));
  return splitter([=](const std::string& text) { return finish(find_parts(*compiled, text)); },
                  behavior);
}

PreTokenizer read_byte_level(const JsonPart& part) {
  const bool adds_space = part.flag("add_prefix_space", true);
  PreTokenizer split;
  if (part.flag("use_regex", true)) {
    const auto pattern = std::make_shared<SplitPattern>(kByteLevelPattern);
    split = splitter([=](const std::string& text) { return find_parts(*pattern, text); },
                     Behavior::kIsolated);
  }
  return [=](std::vector<Piece> pieces) {
    for (auto& piece : pieces) {
      if (adds_space && !piece.text.starts_with(' ')) piece.text.insert(0, " ");
    }
    if (split) pieces = split(std::move(pieces));
    for (auto& piece : pieces) {
      std::string text;
      for (const char byte : piece.text)
        text += byte_characters()[static_cast<unsigned char>(byte)];
      piece.text = std::move(text);
    }
    return pieces;
  };
}

PreTokenizer read_metaspace(const JsonPart& part) {
  const auto mark = part.text("replacement", "\xe2\x96\x81");
  if (utf8_length(mark) != mark.size() || mark.empty()) {
    throw part.error("\"replacement\" is not a single character");
  }
  const auto scheme =
      part.text("prepend_scheme", part.flag("add_prefix_space", true) ? "always" : "never");
  if (scheme != "always" && scheme != "first" && scheme != "never") {
    throw part.unsupported(scheme, "always, first, never");
  }
  PreTokenizer split;
  if (part.flag("split", true)) {
    split = splitter([=](const std::string& text) { return find_parts(mark, text); },
                     Behavior::kWithNext);
  }
  return [=](std::vector<Piece> pieces) {
    for (auto& piece : pieces) {
      piece.text = replaced_text(piece.text, " ", mark);
      const bool prepends = scheme == "always" || (scheme == "first" && piece.is_first);
      if (prepends && !piece.text.starts_with(mark)) piece.text.insert(0, mark);
    }
    return split ? split(std::move(pieces)) : pieces;
  };
}

/// Whether the pre-tokenizer Punctuation splits here: at Unicode's punctuation and ASCII's symbols.
bool ends_word(char32_t c) {
  const bool is_of_ascii = (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
                           (c >= 123 && c <= 126);
  return is_of_ascii || is_punctuation(c);
}

}  // namespace

PreTokenizer read_pre_tokenizer(const JsonPart& part) {
  const auto type = part.text("type");
  if (type == "ByteLevel") return read_byte_level(part);
  if (type == "Split") return read_split(part);
  if (type == "Metaspace") return read_metaspace(part);
  if (type == "Digits") {
    return splitter(
        [](const std::string& text) { return find_characters(text, is_number); },
        part.flag("individual_digits", false) ? Behavior::kIsolated : Behavior::kContiguous);
  }
  if (type == "Punctuation") {
    return splitter([](const std::string& text) { return find_characters(text, ends_word); },
                    read_behavior(part, "Isolated"));
  }
  if (type == "WhitespaceSplit") {
    return splitter([](const std::string& text) { return find_characters(text, is_white_space); },
                    Behavior::kRemoved);
  }
  if (type == "Whitespace") {
    // In this pattern \w includes the joiners too, as in Rust.
    const auto pattern =
        std::make_shared<SplitPattern>(R"([\w\u200c\u200d]+|[^\w\s\u200c\u200d]+)");
    return splitter(
        [=](const std::string& text) {
          Parts parts = find_parts(*pattern, text);
          for (auto& one : parts) one.is_match = !one.is_match;
          return parts;
        },
        Behavior::kRemoved);
  }
  if (type == "Sequence") {
    std::vector<PreTokenizer> steps;
    for (const auto& item : part.at("pretokenizers").items()) {
      steps.push_back(read_pre_tokenizer(item));
    }
    return [=](std::vector<Piece> pieces) {
      for (const auto& step : steps) pieces = step(std::move(pieces));
      return pieces;
    };
  }
  throw part.unsupported(type,
                         "ByteLevel, Split, Metaspace, Digits, Punctuation, Whitespace, "
                         "WhitespaceSplit, Sequence");
}

}  // namespace stepop
