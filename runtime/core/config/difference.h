#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/core/config/value.h"

namespace stepop {

/// One place in which two configs differ. Values are one line each, as in flow YAML.
struct ConfigDifference {
  std::string path;
  std::optional<std::string> before;  ///< None for a key that was added.
  std::optional<std::string> now;     ///< None for a key that was removed.

  bool operator==(const ConfigDifference&) const = default;
};

/// Where `now` differs from `before`: the keys of `before` in its order, then those that were
/// added. Maps are compared key by key, whatever their order, and listed by their leaves also when
/// they were added or removed; lists element by element when they are of equal length, else as
/// wholes. What reads the same counts as equal: `1` and `1.0`, a component by its name alone and
/// the map `{class: Name}`, a key that is missing and one without a value.
std::vector<ConfigDifference> differences(const Value& before, const Value& now);

/// One line each, for people: `  optimizer/lr: 0.003 -> 0.001`, `  + eval_hook/freq: 2e`,
/// `  - extra/note: "x"`. Long values are cut. Empty when there are none; ends without a newline.
std::string describe(const std::vector<ConfigDifference>& differences);

}  // namespace stepop
