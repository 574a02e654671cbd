#include "runtime/data/text/split_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"
#include "runtime/core/base/unicode.h"

namespace stepop {
namespace {

/// The limit for all searches in a text. A pattern that needs more than this has a number of ways
/// that grows with a power of the text's length.
constexpr int64_t kStepsForAByte = 1000;
constexpr int64_t kStepsForAText = 10'000'000;
constexpr size_t kMostPatternBytes = 10'000;

/// What stands in a class for Oniguruma's `\s` and `\w`. PCRE2's `\s` also has U+180E; its `\w` has
/// no marks.
constexpr std::string_view kWhiteSpace =
    R"(\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view kWord =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189})";

/// What stands in a class for all characters that `is_one` is not true of.
std::string all_but(bool (*is_one)(char32_t)) {
  constexpr char32_t kEnd = 0x110000;
  std::string ranges;
  for (char32_t first = 0; first < kEnd; ++first) {
    if (is_one(first)) continue;
    char32_t last = first;
    while (last + 1 < kEnd && !is_one(last + 1)) ++last;
    ranges += fmt::format("\\x{{{:x}}}-\\x{{{:x}}}", static_cast<uint32_t>(first),
                          static_cast<uint32_t>(last));
    first = last;
  }
  return ranges;
}

[[noreturn]] void fail_pattern(std::string_view pattern, const std::string& what, size_t place) {
  throw Error(
      fmt::format("the pattern {} {} (at its byte {})", shortened(pattern, 200), what, place));
}

/// Writes a pattern of Oniguruma's as one of PCRE2's.
class Translation {
 public:
  explicit Translation(std::string_view pattern) : text_(pattern) {
    if (!is_utf8(text_)) fail("is no UTF-8");
    if (text_.size() > kMostPatternBytes) fail("is too long");
    while (at_ < text_.size()) take_item();
    places_.push_back(text_.size());
  }

  const std::string& written() const { return out_; }
  /// Whether a look-ahead or look-behind has a repetition of any length.
  bool repeats_in_look() const { return repeats_in_look_; }
  /// The byte of the pattern that a byte of `written()` comes from.
  size_t place_of(size_t written) const { return places_[std::min(written, out_.size())]; }

 private:
  [[noreturn]] void fail(const std::string& what) const { fail_pattern(text_, what, at_); }
  [[noreturn]] void fail_unsupported(std::string_view what) const {
    fail(fmt::format("has \"{}\", which is not supported", what));
  }

  bool is_at(std::string_view what) const { return text_.substr(at_).starts_with(what); }

  /// Writes `what` for the next `bytes` of the pattern.
  void write(std::string_view what, size_t bytes) {
    out_ += what;
    places_.resize(out_.size(), at_);
    at_ += bytes;
  }
  void copy(size_t bytes) {
    bytes = std::min(bytes, text_.size() - at_);
    write(text_.substr(at_, bytes), bytes);
  }

  void take_item() {
    switch (text_[at_]) {
      case '\\':
        take_escape(false);
        break;
      case '[':
        take_class();
        break;
      case '(':
        take_group();
        break;
      case ')':
        if (groups_.size() > 1) groups_.pop_back();
        copy(1);
        break;
      case '*':
      case '+':
        repeats_in_look_ = repeats_in_look_ || groups_.back();
        copy(1);
        break;
      case '{':
        take_interval();
        break;
      default:
        copy(1);
    }
  }

  void take_group() {
    constexpr std::array<std::string_view, 8> kGroups = {"(?:",  "(?=",  "(?!",  "(?>",
                                                         "(?<=", "(?<!", "(?i:", "(?-i:"};
    if (is_at("(*")) fail_unsupported("(*");
    groups_.push_back(groups_.back());
    if (!is_at("(?")) return copy(1);
    for (const auto group : kGroups) {
      if (!is_at(group)) continue;
      if (group.ends_with('=') || group.ends_with('!')) groups_.back() = true;
      return copy(group.size());
    }
    fail_unsupported(shortened(text_.substr(at_, 4), 4));
  }

  /// `{n}`, `{n,}`, `{,m}` or `{n,m}`; any other brace is a character.
  void take_interval() {
    size_t end = at_ + 1;
    const auto digits = [&] {
      const size_t begin = end;
      while (end < text_.size() && text_[end] >= '0' && text_[end] <= '9') ++end;
      return text_.substr(begin, end - begin);
    };
    const auto least = digits();
    const bool has_comma = end < text_.size() && text_[end] == ',';
    if (has_comma) ++end;
    const auto most = has_comma ? digits() : least;
    const bool is_whole = end < text_.size() && text_[end] == '}';
    if (!is_whole || (least.empty() && most.empty())) return write("\\{", 1);
    // For Oniguruma x{2}+ and x{2}? are (?:x{2})+ and (?:x{2})?.
    const std::string_view behind = text_.substr(end + 1, 1);
    if (behind == "+" || behind == "*" || (behind == "?" && !has_comma)) {
      fail_unsupported(text_.substr(at_, end + 2 - at_));
    }
    if (most.empty() || most.size() > 2) repeats_in_look_ = repeats_in_look_ || groups_.back();
    if (!least.empty()) return copy(end + 1 - at_);
    write(fmt::format("{{0,{}}}", most), end + 1 - at_);
  }

  void take_class() {
    copy(is_at("[^") ? 2 : 1);
    for (bool is_first = true; at_ < text_.size() && (is_first || !is_at("]")); is_first = false) {
      if (is_at("[") || is_at("&&")) fail_unsupported(shortened(text_.substr(at_, 2), 2));
      if (!is_at("\\")) {
        copy(1);
      } else if (take_escape(true) && is_at("-") && !is_at("-]")) {
        write("\\-", 1);  // a class begins no range
      }
    }
    copy(1);
  }

  /// Returns whether the escape is a class of characters.
  bool take_escape(bool is_in_class) {
    static constexpr std::string_view kSame = "dDnrtfae";
    static constexpr std::string_view kEdges = "AzZ";
    const std::string_view next = text_.substr(at_ + 1, 1);
    const char c = next.empty() ? '\0' : next[0];
    const bool is_word = (c | 0x20) == 'w';
    const auto set = is_word ? kWord : kWhiteSpace;
    switch (c) {
      case 's':
      case 'w':
        write(is_in_class ? std::string(set) : fmt::format("[{}]", set), 2);
        return true;
      case 'S':
      case 'W':
        write(is_in_class ? all_but(is_word ? is_word_character : is_white_space)
                          : fmt::format("[^{}]", set),
              2);
        return true;
      case 'p':
      case 'P':
        take_property();
        return true;
      case 'v':
        write("\\x0b", 2);
        return false;
      case 'x':
      case 'u':
        take_code_point(c == 'x' ? 2 : 4);
        return false;
      case 'b':
      case 'B':
        if (is_in_class && c == 'b') break;
        if (is_in_class) fail_unsupported("\\B");
        write(c == 'b' ? fmt::format("(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))", kWord)
                       : fmt::format("(?:(?<=[{0}])(?=[{0}])|(?<![{0}])(?![{0}]))", kWord),
              2);
        return false;
      default: {
        const bool is_letter = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
        const bool is_known = kSame.find(c) != std::string_view::npos ||
                              (!is_in_class && kEdges.find(c) != std::string_view::npos);
        if (is_letter && !is_known) fail_unsupported(text_.substr(at_, 2));
      }
    }
    copy(2);
    return c == 'd' || c == 'D';
  }

  /// `\p{Letter}` becomes `\p{L}`; PCRE2 knows the other names.
  void take_property() {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kLong = {
        {{"Letter", "L"},
         {"Mark", "M"},
         {"Number", "N"},
         {"Punctuation", "P"},
         {"Symbol", "S"},
         {"Separator", "Z"},
         {"Other", "C"}}};
    const size_t end = text_.find('}', at_);
    if (text_.substr(at_ + 2, 1) != "{" || end == std::string_view::npos) {
      fail(fmt::format("has {} without {{...}}", text_.substr(at_, 2)));
    }
    std::string_view name = text_.substr(at_ + 3, end - at_ - 3);
    const std::string_view negation = name.substr(0, name.starts_with('^') ? 1 : 0);
    name.remove_prefix(negation.size());
    for (const auto& [spelt_out, letter] : kLong) {
      if (name == spelt_out) name = letter;
    }
    write(fmt::format("{}{{{}{}}}", text_.substr(at_, 2), negation, name), end + 1 - at_);
  }

  void take_code_point(size_t digits) {
    const bool has_braces = text_.substr(at_ + 2, 1) == "{";
    const size_t begin = at_ + (has_braces ? 3 : 2);
    const size_t end =
        std::min(text_.find_first_not_of("0123456789abcdefABCDEF", begin), text_.size());
    const size_t count = has_braces ? end - begin : std::min(end - begin, digits);
    const bool is_whole =
        has_braces ? count > 0 && count <= 6 && text_.substr(end, 1) == "}" : count == digits;
    if (!is_whole) fail("has an escape that is not a character");
    write(fmt::format("\\x{{{}}}", text_.substr(begin, count)),
          begin + count + (has_braces ? 1 : 0) - at_);
  }

  std::string_view text_;
  std::string out_;
  std::vector<size_t> places_;
  size_t at_ = 0;
  std::vector<bool> groups_ = {false};  ///< For each open group, whether it is within a look.
  bool repeats_in_look_ = false;
};

RegularExpression compiled(std::string_view pattern) {
  const Translation translation(pattern);
  try {
    return RegularExpression(translation.written(), RegularExpression::Kind::kUnicode,
                             translation.repeats_in_look());
  } catch (const RegularExpressionError& error) {
    fail_pattern(pattern, "is wrong: " + error.problem, translation.place_of(error.place));
  }
}

}  // namespace

SplitPattern::SplitPattern(std::string pattern)
    : pattern_(std::move(pattern)), expression_(compiled(pattern_)) {}

int64_t SplitPattern::budget_for(std::string_view text) {
  return kStepsForAText + kStepsForAByte * static_cast<int64_t>(text.size());
}

std::optional<std::pair<size_t, size_t>> SplitPattern::find(std::string_view text, size_t from,
                                                            int64_t& budget) const {
  try {
    const auto found = expression_.find(text, from, budget);
    if (!found) return std::nullopt;
    return std::pair(found->first, found->end);
  } catch (const Error& error) {
    throw Error(fmt::format("the pattern {}: {}", shortened(pattern_, 200), error.what()));
  }
}

}  // namespace stepop
