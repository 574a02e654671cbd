#pragma once

#include <set>
#include <string>
#include <vector>

#include "runtime/core/config/value.h"

namespace stepop {

/// One `--path/key value` of the command line.
struct Override {
  std::string path;
  Value value;
};

/// Sets each override, parents before children; `list/0` is an element, `list/+` appends. A map
/// replaces what is there whole, with `!replace` or without; `!remove` drops the key or element,
/// once all others are set, and within a map the keys that have it. A child set on a component that
/// is given by its name alone turns `Name` into `{class: Name}` first. Throws UsageError for the
/// same path twice, an index outside of its list, and where there is nothing to remove.
void apply_overrides(Value& root, std::vector<Override> overrides);

/// A whole config: the files from left to right, each laid over the ones before it, then the
/// overrides, then the references; those to the environment add their names to `variables`.
Value resolve_config(const std::vector<std::string>& files, std::vector<Override> overrides,
                     std::set<std::string>* variables = nullptr);

}  // namespace stepop
