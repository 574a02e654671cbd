#include "runtime/code/cpp_tokens.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace stepop {
namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || (c & 0x80) != 0;
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<CppToken> run() {
    while (at_ < source_.size()) {
      if (starts("//")) {
        skip_line();
      } else if (starts("/*")) {
        skip_comment();
      } else if (peek() == '#' && is_line_start_) {
        skip_directive();
      } else if (std::isspace(static_cast<unsigned char>(peek())) != 0) {
        if (peek() == '\n') is_line_start_ = true;
        advance(1);
      } else {
        is_line_start_ = false;
        read_token();
      }
    }
    return std::move(tokens_);
  }

 private:
  using Kind = CppToken::Kind;

  char peek(size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  bool starts(std::string_view text) const { return source_.substr(at_).starts_with(text); }

  void advance(size_t count) {
    for (; count > 0 && at_ < source_.size(); --count, ++at_) {
      if (source_[at_] == '\n') {
        ++line_;
        line_begin_ = at_ + 1;
      }
    }
  }

  /// To the end of the line, and of those that a backslash joins to it.
  void skip_line() {
    while (at_ < source_.size() && peek() != '\n') {
      advance(is_joined() ? joined_length() : 1);
    }
  }
  bool is_joined() const { return joined_length() > 0; }
  /// The length of a backslash with the end of line behind it, else 0.
  size_t joined_length() const {
    if (peek() != '\\') return 0;
    if (peek(1) == '\n') return 2;
    return peek(1) == '\r' && peek(2) == '\n' ? 3 : 0;
  }

  void skip_comment() {
    const size_t end = source_.find("*/", at_ + 2);
    advance((end == std::string_view::npos ? source_.size() : end + 2) - at_);
  }

  void skip_directive() {
    while (at_ < source_.size() && peek() != '\n') {
      if (starts("/*")) {
        skip_comment();
      } else if (starts("//")) {
        skip_line();
      } else {
        advance(is_joined() ? joined_length() : 1);
      }
    }
  }

  void read_token() {
    const size_t begin = at_;
    const int line = line_;
    const int column = static_cast<int>(at_ - line_begin_) + 1;
    const Kind kind = read();
    tokens_.push_back({kind, source_.substr(begin, at_ - begin), line, column});
  }

  Kind read() {
    if (is_digit(peek()) || (peek() == '.' && is_digit(peek(1)))) return read_number();
    if (is_word(peek())) {
      const size_t begin = at_;
      while (is_word(peek())) advance(1);
      const std::string_view name = source_.substr(begin, at_ - begin);
      if ((peek() != '"' && peek() != '\'') || !is_prefix(name)) return Kind::kName;
      return name.ends_with('R') && peek() == '"' ? read_raw_text() : read_text();
    }
    if (peek() == '"' || peek() == '\'') return read_text();
    for (const std::string_view sign : {"->", "::", "..."}) {
      if (!starts(sign)) continue;
      advance(sign.size());
      return Kind::kSign;
    }
    advance(1);
    return Kind::kSign;
  }

  static bool is_prefix(std::string_view name) {
    if (name.ends_with('R')) name.remove_suffix(1);
    return name.empty() || name == "u8" || name == "u" || name == "U" || name == "L";
  }

  /// `1'000'000`, `1e-3f`, `0x1p+4`.
  Kind read_number() {
    while (true) {
      const char c = peek();
      const bool is_exponent = c == 'e' || c == 'E' || c == 'p' || c == 'P';
      if (is_exponent && (peek(1) == '+' || peek(1) == '-')) {
        advance(2);
      } else if (is_word(c) || c == '.' || (c == '\'' && is_word(peek(1)))) {
        advance(1);
      } else {
        return Kind::kNumber;
      }
    }
  }

  Kind read_text() {
    const char quote = peek();
    advance(1);
    while (at_ < source_.size() && peek() != quote && peek() != '\n') {
      advance(is_joined() ? joined_length() : peek() == '\\' ? 2 : 1);
    }
    if (peek() == quote) advance(1);
    return Kind::kText;
  }

  /// `R"mark(...)mark"`.
  Kind read_raw_text() {
    const size_t open = source_.find('(', at_);
    if (open == std::string_view::npos) return read_text();
    std::string close(")");
    close += source_.substr(at_ + 1, open - at_ - 1);
    close += '"';
    const size_t end = source_.find(close, open);
    advance((end == std::string_view::npos ? source_.size() : end + close.size()) - at_);
    return Kind::kText;
  }

  std::string_view source_;
  size_t at_ = 0;
  int line_ = 1;
  size_t line_begin_ = 0;
  bool is_line_start_ = true;
  std::vector<CppToken> tokens_;
};

}  // namespace

std::vector<CppToken> cpp_tokens(std::string_view source) { return Lexer(source).run(); }

bool CppToken::is_one_of(std::initializer_list<std::string_view> texts) const {
  return std::any_of(texts.begin(), texts.end(), [this](auto expected) { return is(expected); });
}

CppCode::CppCode(std::string_view source)
    : tokens_(cpp_tokens(source)), behind_(tokens_.size(), tokens_.size()) {
  std::vector<size_t> open;
  for (size_t i = 0; i < size(); ++i) {
    if (opens(i)) {
      open.push_back(i);
    } else if (!open.empty() && at(i).is_one_of({")", "]", "}"})) {
      behind_[open.back()] = i + 1;
      open.pop_back();
    }
  }
}

const CppToken& CppCode::at(size_t position) const {
  static const CppToken kNone;
  return position < tokens_.size() ? tokens_[position] : kNone;
}

bool CppCode::opens(size_t position) const { return at(position).is_one_of({"(", "[", "{"}); }

size_t CppCode::behind_angles(size_t position) const {
  int depth = 0;
  for (; position < size(); position = next(position)) {
    if (at(position).is("<")) ++depth;
    if (at(position).is(">") && --depth == 0) return position + 1;
  }
  return position;
}

size_t CppCode::expression_end(size_t position) const {
  while (position < size() && !at(position).is_one_of({",", ";", ")", "]", "}"})) {
    position = next(position);
  }
  return position;
}

}  // namespace stepop
