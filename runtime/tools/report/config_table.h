#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/core/config/value.h"

namespace stepop {

/// A key in which configs differ, with its value in each, in one line; none where it is missing.
struct ConfigRow {
  std::string path;
  std::vector<std::optional<std::string>> values;

  bool operator==(const ConfigRow&) const = default;
};

/// Where the configs differ from the first, by the rules of `differences`, in its order. There is
/// at least one config.
std::vector<ConfigRow> compare_configs(const std::vector<Value>& configs);

}  // namespace stepop
