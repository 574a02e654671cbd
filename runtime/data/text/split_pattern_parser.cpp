#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"
#include "runtime/data/text/split_pattern.h"

namespace stepop {
namespace {

constexpr size_t kMostParts = 10'000;
constexpr int kDeepest = 100;
constexpr uint32_t kNoLimit = 0xffffffff;
constexpr char32_t kLastCharacter = 0x10ffff;

}  // namespace

/// Turns a pattern into steps, by recursive descent.
class SplitPatternParser {
 public:
  explicit SplitPatternParser(SplitPattern& pattern) : out_(pattern), text_(pattern.pattern_) {}

  void parse() {
    if (!is_utf8(text_)) fail("is no UTF-8");
    alternatives(0);
    if (at_ < text_.size()) fail("\")\" closes nothing");
    add({.kind = Kind::kEnd});
  }

 private:
  using Step = SplitPattern::Step;
  using Kind = Step::Kind;

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(
        fmt::format("the pattern {} {} (at its byte {})", shortened(text_, 200), what, at_));
  }
  [[noreturn]] void fail_unsupported(std::string_view what) const {
    fail(fmt::format("has \"{}\", which is not supported", what));
  }

  bool is_at(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  bool take(std::string_view what) {
    if (!is_at(what)) return false;
    at_ += what.size();
    return true;
  }
  char32_t take_character() {
    if (at_ >= text_.size()) fail("ends too early");
    return next_character(text_, at_);
  }

  size_t add(Step step) {
    if (out_.steps_.size() >= kMostParts) fail("is too long");
    out_.steps_.push_back(step);
    return out_.steps_.size() - 1;
  }
  size_t next() const { return out_.steps_.size(); }
  size_t add_set(CharacterSet set) {
    set.finish();
    out_.sets_.push_back(set);
    return out_.sets_.size() - 1;
  }

  /// Inserts a step before the steps from `first` on.
  void insert(size_t first, Step step) {
    const std::vector<Step> moved(out_.steps_.begin() + static_cast<std::ptrdiff_t>(first),
                                  out_.steps_.end());
    out_.steps_.resize(first);
    add(step);
    append(moved, first, first + 1);
  }

  /// Appends steps that were at `from`, with their jumps adjusted for `to`.
  void append(const std::vector<Step>& steps, size_t from, size_t to) {
    for (Step step : steps) {
      if (step.kind != Kind::kSet && step.kind != Kind::kRepeat && step.kind != Kind::kRepeatOnly) {
        step.a = step.a - from + to;
        step.b = step.b - from + to;
      }
      add(step);
    }
  }

  /// Returns whether the alternatives can match an empty text.
  bool alternatives(int depth) {
    if (depth > kDeepest) fail("has groups in too many others");
    const size_t first = next();
    bool can_be_empty = sequence(depth);
    if (!take("|")) return can_be_empty;
    insert(first, {.kind = Kind::kFork, .a = first + 1});
    const size_t jump = add({.kind = Kind::kJump});
    out_.steps_[first].b = next();
    can_be_empty = alternatives(depth + 1) || can_be_empty;
    out_.steps_[jump].a = next();
    return can_be_empty;
  }

  bool sequence(int depth) {
    bool can_be_empty = true;
    while (at_ < text_.size() && !is_at("|") && !is_at(")")) {
      can_be_empty = quantified(depth) && can_be_empty;
    }
    return can_be_empty;
  }

  bool quantified(int depth) {
    const size_t first = next();
    const bool can_be_empty = atom(depth);
    const auto [least, most] = quantity();
    if (least == 1 && most == 1) return can_be_empty;
    const bool is_possessive = !is_interval_ && take("+");
    const bool is_lazy = !is_possessive && take("?");
    if (is_at("*") || is_at("+") || is_at("?")) fail("has two quantifiers in a row");
    const bool is_set = next() == first + 1 && out_.steps_[first].kind == Kind::kSet;
    if (is_set && !is_lazy) {
      out_.steps_[first].kind = is_possessive ? Kind::kRepeatOnly : Kind::kRepeat;
      out_.steps_[first].least = least;
      out_.steps_[first].most = most;
      return least == 0;
    }
    if (can_be_empty) fail("repeats what may be empty, which is not supported");
    repeat(first, least, most, is_lazy);
    if (is_possessive) {
      insert(first, {.kind = Kind::kOnly});
      add({.kind = Kind::kEnd});
      out_.steps_[first].a = next();
    }
    return least == 0;
  }

  /// Repeats the steps from `first` on: `least` copies, and optional copies up to `most`.
  void repeat(size_t first, uint32_t least, uint32_t most, bool is_lazy) {
    const std::vector<Step> body(out_.steps_.begin() + static_cast<std::ptrdiff_t>(first),
                                 out_.steps_.end());
    out_.steps_.resize(first);
    for (uint32_t i = 0; i < least; ++i) append(body, first, next());
    const auto fork = [&] { return add({.kind = Kind::kFork}); };
    const auto set_ways = [&](size_t place, size_t into, size_t past) {
      out_.steps_[place].a = is_lazy ? past : into;
      out_.steps_[place].b = is_lazy ? into : past;
    };
    if (most == kNoLimit) {
      const size_t place = fork();
      append(body, first, next());
      add({.kind = Kind::kJump, .a = place});
      set_ways(place, place + 1, next());
      return;
    }
    std::vector<size_t> forks;
    for (uint32_t i = least; i < most; ++i) {
      forks.push_back(fork());
      append(body, first, next());
    }
    for (const size_t place : forks) set_ways(place, place + 1, next());
  }

  std::pair<uint32_t, uint32_t> quantity() {
    is_interval_ = false;
    if (take("*")) return {0, kNoLimit};
    if (take("+")) return {1, kNoLimit};
    if (take("?")) return {0, 1};
    if (!is_at("{")) return {1, 1};
    is_interval_ = true;
    ++at_;
    const auto digits = [&](uint32_t fallback) {
      const size_t begin = at_;
      uint32_t value = 0;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
        value = value * 10 + static_cast<uint32_t>(text_[at_++] - '0');
        if (value > kMostParts) fail("repeats too often");
      }
      return at_ == begin ? fallback : value;
    };
    const uint32_t least = digits(0);
    const uint32_t most = take(",") ? digits(kNoLimit) : least;
    if (!take("}") || most < least) fail("has braces that are not {n}, {n,} or {n,m}");
    if (most == 0) fail("repeats something 0 times");
    return {least, most};
  }

  /// Returns whether the atom can match an empty text.
  bool atom(int depth) {
    if (take("(")) return group(depth);
    CharacterSet set;
    if (take("[")) {
      read_class(set);
    } else if (take(".")) {
      set.add('\n', '\n');
      set.negate();
    } else if (take("\\")) {
      escape(set, false);
    } else if (is_at("^") || is_at("$")) {
      fail_unsupported(text_.substr(at_, 1));
    } else if (is_at("*") || is_at("+") || is_at("?")) {
      fail("has a quantifier with nothing before it");
    } else {
      add_character(set, take_character());
    }
    add({.kind = Kind::kSet, .a = add_set(set)});
    return false;
  }

  bool group(int depth) {
    const bool outer = ignores_case_;
    Kind look = Kind::kJump;
    if (take("?")) {
      if (take("i:")) {
        ignores_case_ = true;
      } else if (take("=")) {
        look = Kind::kAhead;
      } else if (take("!")) {
        look = Kind::kNotAhead;
      } else if (take(">")) {
        look = Kind::kOnly;
      } else if (!take(":")) {
        fail_unsupported("(?" + std::string(text_.substr(at_, 2)));
      }
    }
    const size_t first = next();
    if (look != Kind::kJump) add({.kind = look});
    bool can_be_empty = alternatives(depth + 1);
    if (!take(")")) fail("has a group without an end");
    ignores_case_ = outer;
    if (look == Kind::kJump) return can_be_empty;
    add({.kind = Kind::kEnd});
    out_.steps_[first].a = next();
    return look != Kind::kOnly || can_be_empty;
  }

  /// Reads a class after its "[".
  void read_class(CharacterSet& set) {
    const bool is_negated = take("^");
    for (bool is_first = true; is_first || !is_at("]"); is_first = false) {
      if (is_at("[") || is_at("&&")) fail_unsupported(text_.substr(at_, 2));
      if (take("\\")) {
        if (!escape(set, true)) continue;
      } else {
        last_ = take_character();
      }
      const char32_t low = last_;
      const bool is_range = is_at("-") && !is_at("-]");
      if (!is_range) {
        add_character(set, low);
        continue;
      }
      ++at_;
      if (take("\\")) {
        CharacterSet none;
        if (!escape(none, true)) fail("has a range that ends in a class");
      } else {
        last_ = take_character();
      }
      if (last_ < low) fail("has a range whose end comes before its beginning");
      if (ignores_case_) fail_unsupported("a range within (?i:");
      set.add(low, last_);
    }
    ++at_;
    if (is_negated) set.negate();
  }

  /// Reads an escape after its backslash. A class is added to the set. A character is added to the
  /// set too, or within [...] put into `last_`, and the result is true.
  bool escape(CharacterSet& set, bool is_within_class) {
    const char32_t c = take_character();
    switch (c) {
      case 's':
      case 'S':
        set.add_white_space(c == 'S');
        return false;
      case 'w':
      case 'W':
        set.add_word(c == 'W');
        return false;
      case 'd':
        set.add_categories(mask_of(Category::kNd));
        return false;
      case 'D':
        set.add_categories(~mask_of(Category::kNd));
        return false;
      case 'p':
      case 'P':
        property(set, c == 'P');
        return false;
      case 'n':
        last_ = '\n';
        break;
      case 'r':
        last_ = '\r';
        break;
      case 't':
        last_ = '\t';
        break;
      case 'f':
        last_ = '\f';
        break;
      case 'v':
        last_ = '\v';
        break;
      case 'x':
      case 'u':
        last_ = code_point(c == 'x' ? 2 : 4);
        break;
      default:
        if (c >= 0x80 || is_word_character(c)) {
          at_ -= 2;
          fail_unsupported(text_.substr(at_, 2));
        }
        last_ = c;
    }
    if (!is_within_class) add_character(set, last_);
    return true;
  }

  char32_t code_point(int digits) {
    const bool has_braces = take("{");
    char32_t value = 0;
    int count = 0;
    while (at_ < text_.size() && count < (has_braces ? 6 : digits)) {
      const char c = text_[at_];
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) break;
      value = value * 16 + static_cast<char32_t>(digit);
      ++at_, ++count;
    }
    const bool is_whole = count > 0 && (has_braces ? take("}") : count == digits);
    if (!is_whole || value > kLastCharacter) fail("has an escape that is not a character");
    return value;
  }

  void property(CharacterSet& set, bool is_negated) {
    const size_t end = text_.find('}', at_);
    if (!take("{") || end == std::string_view::npos) fail("has \\p without {...}");
    std::string_view name = text_.substr(at_, end - at_);
    if (name.starts_with('^')) {
      is_negated = !is_negated;
      name.remove_prefix(1);
    }
    const CategoryMask mask = categories_named(name);
    if (mask == 0) {
      fail_unsupported(fmt::format("\\p{{{}}}", shortened(name, 40)));
    }
    at_ = end + 1;
    set.add_categories(is_negated ? ~mask : mask);
  }

  void add_character(CharacterSet& set, char32_t c) {
    set.add(c, c);
    if (!ignores_case_) return;
    if (c >= 0x80) fail_unsupported("a character beyond ASCII within (?i:");
    const char32_t small = c | 0x20;
    if (small < 'a' || small > 'z') return;
    set.add(c ^ 0x20, c ^ 0x20);
    if (small == 's') set.add(0x17f, 0x17f);    // the long s
    if (small == 'k') set.add(0x212a, 0x212a);  // the Kelvin sign
  }

  SplitPattern& out_;
  std::string_view text_;
  size_t at_ = 0;
  bool ignores_case_ = false;
  bool is_interval_ = false;  ///< The last quantifier was {n,m}.
  char32_t last_ = 0;
};

SplitPattern::SplitPattern(std::string pattern) : pattern_(std::move(pattern)) {
  SplitPatternParser(*this).parse();
}

}  // namespace stepop
