#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/config/value.h"

namespace stepop {

/// One `--path/key value` of the command line.
struct Override {
  std::string path;
  Value value;
};

/// `later` laid over `base`: maps merge deeply, lists and scalars replace. In `later`, the tag
/// `!replace` on a map replaces the map of `base` whole, `!remove` drops the key.
void merge(Value& base, const Value& later);

/// Sets each override, parents before children; `list/0` is an element, `list/+` appends. A child
/// set on a component that is given by its name alone turns `Name` into `{class: Name}` first.
/// Throws UsageError for the same path twice and for an index outside of its list.
void apply_overrides(Value& root, std::vector<Override> overrides);

/// Replaces every text that is wholly `{path/to/key}` by the value at that path, with its type, and
/// `{path/to/key}` inside of a longer text by its text; `{env:NAME}` and `{env:NAME:default}` by a
/// variable of the environment, which has the type that a plain scalar of YAML would have where it
/// is the whole text. `{{` becomes a literal brace. Throws UsageError for a path that is not there,
/// a variable that is not there and has no default, and a circle. Inside of a longer text, braces
/// around what is near no key stay as they are.
void resolve_references(Value& root);

/// The inverse of the above for a resolved config: texts that would be taken for references, or
/// whose braces would be halved, are escaped, so that writing and resolving again changes nothing.
Value escape_references(const Value& root);

/// Merge, overrides and references in order: files left to right, then overrides, then references.
/// A file with `include: [base.yaml]`, or one name alone, is laid over these files, whose names are
/// relative to its own.
Value resolve_config(const std::vector<std::string>& files, std::vector<Override> overrides);

}  // namespace stepop
