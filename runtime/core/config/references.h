#pragma once

#include <set>
#include <string>

#include "runtime/core/value/value.h"

namespace stepop {

/// Replaces references. A text that is exactly `{path/to/key}` becomes the value at that path, with
/// its type; within a longer text, `{path/to/key}` becomes the value's text. `{env:NAME}` and
/// `{env:NAME:default}` become an environment variable; if the reference is the whole text, the
/// variable gets the type of a plain YAML scalar. `{num_epochs} * 2` becomes a number, see
/// arithmetic.h. `{{` becomes a literal brace. Throws UsageError
/// for a missing path, a missing variable without a default, and a circle. Within a longer text,
/// braces stay as they are if their text is near no key. Adds the names of the requested variables
/// to `variables`.
void resolve_references(Value& root, std::set<std::string>* variables = nullptr);

/// The inverse of the above for a resolved config: escapes texts that look like references, or
/// whose braces would be halved, so that writing and resolving the config again changes nothing.
Value escape_references(const Value& root);

}  // namespace stepop
