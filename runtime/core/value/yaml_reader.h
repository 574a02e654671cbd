#pragma once

#include <string>
#include <string_view>

#include "runtime/core/value/value.h"

namespace stepop {

/// Reads a YAML file with one document, a map; an empty file is an empty map. Scalars follow the
/// core schema of YAML 1.2, `<<` is expanded, and an unquoted `{path}` is the text `{path}`. Throws
/// UsageError for a missing file, bad syntax, a duplicate key, and several documents.
Value read_yaml_file(const std::string& path);

/// The same for a file whose keys may be paths in another config, such as `optimizer/lr`: such a
/// path is one key, unchanged.
Value read_yaml_file_with_paths(const std::string& path);

/// The same for a text; its values get `origin.file` as their file. `origin.line` is the line
/// before the first line of the text; with `keep_line`, every value gets exactly `origin`.
Value parse_yaml(std::string_view text, const Origin& origin, bool keep_line = false);

}  // namespace stepop
