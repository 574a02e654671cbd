#pragma once

#include <string>
#include <string_view>

#include "runtime/core/config/value.h"

namespace stepop {

/// The document in a YAML file, a map at its top; an empty file is an empty map. Scalars follow
/// the core schema of YAML 1.2, `<<` is expanded, an unquoted `{path}` is the text `{path}`.
/// Throws UsageError for a missing file, bad syntax, a duplicate key, several documents.
Value read_yaml_file(const std::string& path);

/// The same for a file whose keys may be paths in another config, such as `optimizer/lr`: they are
/// keys of one map, as they stand.
Value read_yaml_file_with_paths(const std::string& path);

/// The same for a text whose values get `origin.file` as their file. `origin.line` is the line
/// before the text's first; when `keep_line` is set, every value gets `origin` as it is.
Value parse_yaml(std::string_view text, const Origin& origin, bool keep_line = false);

}  // namespace stepop
