#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stepop {

/// A comparison in a text: `validation/eval_op/loss < 0.5`, `optimizer/lr=1e-3`.
struct Comparison {
  enum class Sign { kEqual, kUnequal, kLess, kLessOrEqual, kGreater, kGreaterOrEqual };

  std::string name;
  Sign sign = Sign::kEqual;
  std::string value;  ///< As it is written, without spaces around it.

  /// Whether `found` compares with `limit` as `sign` says; false for a NaN, but with kUnequal.
  bool holds(double found, double limit) const;
};

/// Reads a comparison by its first sign: `=`, `==`, `!=`, `<`, `<=`, `>` or `>=`. Returns nothing
/// when there is none, or no name before it.
std::optional<Comparison> read_comparison(std::string_view text);

}  // namespace stepop
