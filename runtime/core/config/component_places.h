#pragma once

#include <string>
#include <vector>

#include "runtime/core/config/registry.h"

namespace stepop {

/// A registered component, with its kind.
struct PlacedComponent {
  const Catalogue* catalogue;
  const Registration* registration;
};

/// What the `value` at the full path `path` may name: a text, or a map with `class` or `type`.
/// Where components of several kinds share the name, `networks/x` and `eval_callbacks/x` tell them
/// apart. A map with `class` that stands elsewhere may be of any kind; a text elsewhere is just a
/// text.
std::vector<PlacedComponent> components_at(const Value& value, const std::string& path);

}  // namespace stepop
