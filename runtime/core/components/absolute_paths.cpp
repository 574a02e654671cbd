// Makes the paths of all components in a config absolute (registry.h).
#include <string>
#include <string_view>

#include "runtime/core/components/component_places.h"
#include "runtime/core/components/registry.h"

namespace stepop {
namespace {

/// `init_from: weights.safetensors`, `init_from: {path: weights.safetensors}`, or a list of either.
void make_init_from_absolute(const Config& config) {
  const Value* value = config.peek();
  if (value == nullptr) return;
  if (value->is_text()) return config.resolve_path("");
  if (value->is_map()) return make_init_from_absolute(config.at("path"));
  if (!value->is_list()) return;
  for (size_t i = 0; i < value->as_list().size(); ++i) {
    make_init_from_absolute(config.at(std::to_string(i)));
  }
}

/// `report: ./my_report.py`, a callback that is a Python script.
void make_scripts_absolute(const Config& callbacks) {
  for (const auto& name : callbacks.keys()) {
    const Value* value = callbacks.peek(name);
    if (value->is_text() && value->as_text().ends_with(".py")) callbacks.resolve_path(name);
  }
}

/// A path, or a map with paths.
void make_path_absolute(const Config& config, const std::string& name) {
  const Value* value = config.peek(name);
  if (value->is_text()) return config.resolve_path(name);
  if (!value->is_map()) return;
  for (const auto& key : config.at(name).keys()) {
    if (config.peek(join_path(name, key))->is_text()) config.resolve_path(join_path(name, key));
  }
}

/// `my_data.py:Train`, an object of a Python file; not `torchvision.datasets:MNIST`.
bool is_object_of_file(const Value& value) {
  if (!value.is_text()) return false;
  const std::string& text = value.as_text();
  const size_t colon = text.rfind(':');
  return colon != std::string::npos && colon + 1 < text.size() &&
         std::string_view(text).substr(0, colon).ends_with(".py");
}

}  // namespace

void make_paths_absolute(const Config& config) {
  if (config.path().empty()) {
    make_init_from_absolute(config.at("init_from"));
    make_scripts_absolute(config.at("eval_hook/eval_callbacks"));
    for (const auto& name : config.at("evaluations").keys()) {
      make_scripts_absolute(config.at("evaluations/" + name + "/eval_callbacks"));
    }
  }
  for (const auto& key : config.keys()) make_paths_absolute(config.at(key));
  const Value* value = config.peek();
  for (size_t i = 0; value != nullptr && value->is_list() && i < value->as_list().size(); ++i) {
    const Value& item = value->as_list()[i];
    if (item.is_map() || item.is_list()) make_paths_absolute(config.at(std::to_string(i)));
  }
  if (value == nullptr || !value->is_map() || !value->as_map().contains("class")) return;
  for (const auto& component : components_at(*value, config.path())) {
    for (const auto& parameter : component.registration->about.parameters) {
      const Value* path = config.peek(parameter.name);
      if (path == nullptr) continue;
      if (parameter.is_path) make_path_absolute(config, parameter.name);
      if (is_object_of_file(*path)) config.resolve_path(parameter.name);
    }
  }
}

}  // namespace stepop
