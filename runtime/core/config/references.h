#pragma once

#include <set>
#include <string>

#include "runtime/core/config/value.h"

namespace stepop {

/// Replaces every text that is wholly `{path/to/key}` by the value at that path, with its type, and
/// `{path/to/key}` inside of a longer text by its text; `{env:NAME}` and `{env:NAME:default}` by a
/// variable of the environment, which has the type that a plain scalar of YAML would have where it
/// is the whole text. `{{` becomes a literal brace. Throws UsageError for a path that is not there,
/// a variable that is not there and has no default, and a circle. Inside of a longer text, braces
/// around what is near no key stay as they are. The names of the variables that were asked for are
/// added to `variables`.
void resolve_references(Value& root, std::set<std::string>* variables = nullptr);

/// The inverse of the above for a resolved config: texts that would be taken for references, or
/// whose braces would be halved, are escaped, so that writing and resolving again changes nothing.
Value escape_references(const Value& root);

}  // namespace stepop
