#include "eval_out/callback.h"

#include <exception>
#include <utility>
#include <vector>

#include "runtime/error_text.h"

namespace stepop {
namespace {

constexpr const char* kArguments = "eval_pipeline/callback_kwargs";

/// The callbacks that the config names; a name with null is one that a later file switched off.
std::vector<std::pair<std::string, Component>> read_callbacks(const Config& config,
                                                              std::string_view path) {
  if (const Value* value = config.peek(path);
      value != nullptr && !value->is_null() && !value->is_map()) {
    throw config.error(path,
                       "expected a map of names and callbacks, such as {accuracy: accuracy}, "
                       "found " +
                           value->describe());
  }
  std::vector<std::pair<std::string, Component>> found;
  const Config here = config.at(path);
  for (const auto& name : here.keys()) {
    if (!here.has(name)) continue;
    Component component = read_component(here, name);
    if (here.peek(name)->is_text()) {
      component.params = config.root().at(join_path(kArguments, name));
    }
    found.emplace_back(name, std::move(component));
  }
  return found;
}

}  // namespace

CallbackRegistry& callbacks() {
  static CallbackRegistry registry("callback");
  return registry;
}

CallbackResults run_callbacks(const Config& config, std::string_view path, const std::string& root,
                              const Dataset& data_in, const EvalFile& data_out) {
  CallbackResults results;
  for (const auto& [name, component] : read_callbacks(config, path)) {
    try {
      const auto& callback = callbacks().factory(component.name, config, join_path(path, name));
      results.logs.set(name, callback({root, data_in, data_out, config.root(), component.params}));
    } catch (const Interrupted&) {
      throw;
    } catch (const std::exception& error) {
      results.failures.set(name, error_text(error));
    } catch (...) {
      results.failures.set(name, "it threw something that is no std::exception");
    }
  }
  return results;
}

void declare_callbacks(const Config& config, std::string_view path) {
  for (const auto& [name, component] : read_callbacks(config, path)) {
    callbacks().factory(component.name, config, join_path(path, name));
    for (const auto& registration : callbacks().registrations()) {
      if (registration.name != component.name) continue;
      for (const auto& parameter : registration.about.parameters) {
        const bool is_given = component.params.has(parameter.name);
        if (is_given && parameter.is_path) component.params.get_path(parameter.name);
      }
    }
  }
}

}  // namespace stepop
