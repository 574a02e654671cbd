// Makes the keys of components known that a run does not build (registry.h).
#include <fmt/format.h>

#include <string>
#include <vector>

#include "runtime/core/components/component_places.h"
#include "runtime/core/components/registry.h"

namespace stepop {
namespace {

/// Declares a component that a parameter of another one holds, such as the dataset of an Augment.
/// All other values count as read.
void declare_parameter(const Config& params, const std::string& name) {
  const Value* value = params.peek(name);
  if (value->is_list()) {
    for (size_t i = 0; i < value->as_list().size(); ++i) {
      declare_parameter(params, fmt::format("{}/{}", name, i));
    }
  }
  if (!value->is_map()) return;
  const auto found = value->find("class") == nullptr
                         ? std::vector<PlacedComponent>{}
                         : components_at(*value, join_path(params.path(), name));
  if (found.size() != 1) return params.claim(name);
  declare_component(*found.front().catalogue, params, name);
}

}  // namespace

void declare_component(const Catalogue& catalogue, const Config& config, std::string_view path) {
  if (!config.has(path)) return;
  const Component component = read_component(config, path);
  const About& about = catalogue.registration(component.name, config, path).about;
  // Only its own code knows what one without a declaration reads.
  if (about.summary.empty() && about.parameters.empty()) return config.claim(path);
  for (const auto& parameter : about.parameters) {
    const bool is_given = component.params.has(parameter.name);
    const Value* value = is_given ? component.params.peek(parameter.name) : nullptr;
    if (value != nullptr && parameter.is_path && !value->is_map()) {
      component.params.declare_path(parameter.name);
    }
    if (value != nullptr) declare_parameter(component.params, parameter.name);
  }
}

}  // namespace stepop
