#include "runtime/core/value/comparison.h"

#include <algorithm>
#include <string_view>

namespace stepop {
namespace {

struct Spelling {
  std::string_view text;
  Comparison::Sign sign;
};
/// The longer ones first.
constexpr Spelling kSigns[] = {
    {"==", Comparison::Sign::kEqual},       {"!=", Comparison::Sign::kUnequal},
    {"<=", Comparison::Sign::kLessOrEqual}, {">=", Comparison::Sign::kGreaterOrEqual},
    {"=", Comparison::Sign::kEqual},        {"<", Comparison::Sign::kLess},
    {">", Comparison::Sign::kGreater}};

std::string_view without_spaces(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

}  // namespace

bool Comparison::holds(double found, double limit) const {
  switch (sign) {
    case Sign::kEqual:
      return found == limit;
    case Sign::kUnequal:
      return found != limit;
    case Sign::kLess:
      return found < limit;
    case Sign::kLessOrEqual:
      return found <= limit;
    case Sign::kGreater:
      return found > limit;
    case Sign::kGreaterOrEqual:
      return found >= limit;
  }
  return false;
}

std::optional<Comparison> read_comparison(std::string_view text) {
  const size_t at = text.find_first_of("=!<>");
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(at);
  const auto* found = std::ranges::find_if(
      kSigns, [&](const Spelling& each) { return rest.starts_with(each.text); });
  const std::string_view name = without_spaces(text.substr(0, at));
  if (found == std::end(kSigns) || name.empty()) return std::nullopt;
  return Comparison{std::string(name), found->sign,
                    std::string(without_spaces(rest.substr(found->text.size())))};
}

}  // namespace stepop
