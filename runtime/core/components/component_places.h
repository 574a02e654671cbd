#pragma once

#include <string>
#include <vector>

#include "runtime/core/components/registry.h"

namespace stepop {

/// A registered component, with its kind and role.
struct PlacedComponent {
  const Catalogue* catalogue;
  const Registration* registration;
};

/// The components that the `value` at the full path `path` may name: `value` is a text, or a map
/// with `class` or `type`. Where components of several roles share a name, `networks/x` and
/// `eval_callbacks/x` distinguish them. A map with `class` in any other place may be of any role; a
/// text in any other place is just a text.
std::vector<PlacedComponent> components_at(const Value& value, const std::string& path);

}  // namespace stepop
