#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/core/value/value.h"

namespace stepop {

/// One difference between two configs. Values are in one line, as flow YAML.
struct ConfigDifference {
  std::string path;
  std::optional<std::string> before;  ///< None for a key that was added.
  std::optional<std::string> now;     ///< None for a key that was removed.

  bool operator==(const ConfigDifference&) const = default;
};

/// The differences of `now` from `before`: the keys of `before` in its order, followed by added
/// keys. Maps are compared key by key, whatever their order; added or removed maps are listed by
/// their leaves. Lists of equal length are compared element by element, other lists as wholes.
/// Values that are read as the same count as equal: `1` and `1.0`, a component's name alone and the
/// map `{class: Name}`, a missing key and a key without a value.
std::vector<ConfigDifference> differences(const Value& before, const Value& now);

/// One readable line for each: `  optimizer/lr: 0.003 -> 0.001`, `  + eval_hook/freq: 2e`, `  -
/// extra/note: "x"`. Long values are cut. Empty without differences; no newline at the end.
std::string describe(const std::vector<ConfigDifference>& differences);

}  // namespace stepop
