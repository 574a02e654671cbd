// What a parameter of a component is: its name, default, meaning, and what it may be.
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace stepop {

/// Numbers that a parameter may be: `above(0)`, `at_least(0).below(1)`.
struct Range {
  double lowest = -std::numeric_limits<double>::infinity();
  double highest = std::numeric_limits<double>::infinity();
  bool has_lowest = true;  ///< Whether a bound belongs to it.
  bool has_highest = true;

  constexpr Range below(double bound) const { return {lowest, bound, has_lowest, false}; }
  constexpr Range at_most(double bound) const { return {lowest, bound, has_lowest, true}; }

  /// NaN is in no range with a bound.
  bool contains(double number) const;
  bool is_limited() const { return !(lowest == Range().lowest && highest == Range().highest); }
  /// After "expected": `more than 0`, `0 or more`, `a number from 0 to below 1`.
  std::string text() const;
};
constexpr Range above(double bound) { return {.lowest = bound, .has_lowest = false}; }
constexpr Range at_least(double bound) { return {.lowest = bound}; }

/// What a parameter may be. The words of `kind` are those of the runtime's own keys: `bool`, `int`,
/// `number`, `text`, `path`, `list of int`, ..., `span`, `schedule`; with ` | ` between several.
struct ParameterType {
  std::string kind = {};                  ///< Empty: only its reader knows.
  Range range = {};                       ///< Of a number, and of each number of a list.
  std::vector<std::string> choices = {};  ///< Of a text; empty: any.
};

/// One parameter of a component, as shown by `stepop list`.
struct Parameter {
  std::string name;
  std::string default_value;  ///< As in a config; empty for a required parameter.
  std::string about;
  bool is_path = false;  ///< The name of a file or folder, absolute in the saved config.
  ParameterType type = {};
};

}  // namespace stepop
