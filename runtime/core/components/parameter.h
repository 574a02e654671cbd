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

/// What a parameter or a key may be.
struct ParameterType {
  /// Alternatives, with ` | ` between them; empty: only its reader knows.
  ///
  ///   bool, int, number, text, map, list, any    as in YAML
  ///   path                                        of a file or folder
  ///   time                                        a Trigger: 500, 2e, 10m, {every: 500, from: 1e}
  ///   span                                        a Duration: 500, 2e, 10m
  ///   clock                                       3h50m
  ///   schedule                                    a number, or a Schedule
  ///   regex                                       a NamePattern
  ///   op                                          train/log_op, or {op, when, images}
  ///   component KIND                              a name, or a map with `class`
  ///   list of T                                   a list whose items are T
  std::string kind = {};
  Range range = {};                       ///< Of a number, and of each number of a list.
  std::vector<std::string> choices = {};  ///< Of a text, or with another kind besides; empty: any.

  /// For people: `int >= 1 | map`, `'stop' | 'split'`.
  std::string text() const;
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
