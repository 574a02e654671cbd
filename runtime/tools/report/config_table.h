#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/core/value/value.h"

namespace stepop {

/// A key in which configs differ, with its one-line value in each; nothing for a missing key.
struct ConfigRow {
  std::string path;
  std::vector<std::optional<std::string>> values;

  bool operator==(const ConfigRow&) const = default;
};

/// The differences from the first config, by the rules of `differences`, in their order. Needs at
/// least one config.
std::vector<ConfigRow> compare_configs(const std::vector<Value>& configs);

}  // namespace stepop
