#include "runtime/log/plain_line.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace stepop {
namespace {

constexpr std::string_view kStep = "{\"step\":";
/// Fewer digits than the largest number has.
constexpr size_t kMostDigits = 18;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Takes from a text what it is asked for, if that is what comes next.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  /// A whole number of 0 or more, as JSON has it; empty when there is none.
  std::string_view take_digits() {
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), is_digit);
    const std::string_view digits = rest_.substr(0, static_cast<size_t>(end - rest_.begin()));
    if (digits.size() > kMostDigits || (digits.size() > 1 && digits[0] == '0')) return {};
    rest_.remove_prefix(digits.size());
    return digits;
  }

  /// Digits that may begin with zeros.
  bool take_fraction() {
    const size_t before = rest_.size();
    while (!rest_.empty() && is_digit(rest_.front())) rest_.remove_prefix(1);
    return rest_.size() < before;
  }

  /// Such as `-1.25e-07`; an exponent of two digits cannot be too large.
  bool take_number() {
    take("-");
    if (take_digits().empty()) return false;
    if (take(".") && !take_fraction()) return false;
    if (!take("e") && !take("E")) return true;
    if (!take("-")) take("+");
    const size_t before = rest_.size();
    return take_fraction() && before - rest_.size() <= 2;
  }

  /// A text of plain characters that is not one of the keys with a meaning of their own.
  bool take_key() {
    if (!take("\"")) return false;
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), [](char c) {
      return c >= ' ' && c <= '~' && c != '"' && c != '\\';
    });
    const std::string_view key = rest_.substr(0, static_cast<size_t>(end - rest_.begin()));
    rest_.remove_prefix(key.size());
    const bool is_own = key == "step" || key == "epoch" || key == "samples" || key == "time";
    return !is_own && take("\"");
  }

  bool is_at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace

std::optional<int64_t> step_of_plain_line(std::string_view line) {
  Scanner scanner(line);
  if (!scanner.take(kStep)) return std::nullopt;
  const std::string_view digits = scanner.take_digits();
  if (digits.empty() || !scanner.take(",\"epoch\":") || !scanner.take_number() ||
      !scanner.take(",\"samples\":") || scanner.take_digits().empty() ||
      !scanner.take(",\"time\":") || !scanner.take_number()) {
    return std::nullopt;
  }
  while (scanner.take(",")) {
    if (!scanner.take_key() || !scanner.take(":")) return std::nullopt;
    const bool is_value = scanner.take("\"NaN\"") || scanner.take("\"Infinity\"") ||
                          scanner.take("\"-Infinity\"") || scanner.take_number();
    if (!is_value) return std::nullopt;
  }
  if (!scanner.take("}") || !scanner.is_at_end()) return std::nullopt;
  int64_t step = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), step);
  return step;
}

}  // namespace stepop
