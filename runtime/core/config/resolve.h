#pragma once

#include <set>
#include <string>
#include <vector>

#include "runtime/core/value/value.h"

namespace stepop {

/// One `--path/key value` from the command line.
struct Override {
  std::string path;
  Value value;

  bool operator==(const Override&) const = default;
};

/// Applies the overrides, parents before children; `list/0` is an element, `list/+` appends. A map
/// replaces the whole previous value, with or without `!replace`. `!remove` removes the key or
/// element after all other overrides are set; within a map it removes the keys that have the tag.
/// If a component is given by its name alone, setting a child first turns `Name` into `{class:
/// Name}`. Throws UsageError for two overrides of the same path, an index outside of its list, and
/// a removal of a missing key.
void apply_overrides(Value& root, std::vector<Override> overrides);

/// Config files with what they include, each merged over the previous ones.
Value read_config_files(const std::vector<std::string>& files);

/// Resolves what `read_config_files` read: applies the overrides, then the references. Adds the
/// names of referenced environment variables to `variables`.
Value resolve_files(Value files, std::vector<Override> overrides,
                    std::set<std::string>* variables = nullptr);

/// Reads and resolves a whole config: the files from left to right, each merged over the previous
/// ones, then the overrides, then the references.
Value resolve_config(const std::vector<std::string>& files, std::vector<Override> overrides);

}  // namespace stepop
