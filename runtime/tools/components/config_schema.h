#pragma once

#include <set>
#include <string>

namespace stepop {

/// A JSON Schema (draft 7) of a config: the runtime's own keys and all registered components with
/// their parameters, for editors and other programs that check YAML. A text with a brace, a
/// reference, may stand for any value. With `is_strict`, a class must be registered. Otherwise it
/// may have any name, for a project whose own code registers more. `built_in`: the
/// registered_components() before that code was loaded; a component of that code that names no
/// parameters may have any.
std::string config_schema(bool is_strict, const std::set<std::string>& built_in);

/// All components, as `dataset:Synthetic`.
std::set<std::string> registered_components();

}  // namespace stepop
