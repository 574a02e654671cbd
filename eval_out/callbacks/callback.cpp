#include "eval_out/callbacks/callback.h"

#include <exception>
#include <utility>
#include <vector>

#include "eval_out/callbacks/script.h"
#include "runtime/base/error.h"
#include "runtime/base/error_text.h"
#include "runtime/log/log_files.h"
#include "runtime/system/folders.h"

namespace stepop {
namespace {

constexpr const char* kArguments = "eval_pipeline/callback_kwargs";

/// The class that runs scripts.
constexpr const char* kScript = "Script";

struct NamedCallback {
  std::string name;
  Component component;
  std::string script;  ///< Absolute path of the Python script that it is; else empty.
};

/// `accuracy`, `./my_report.py`, or a map with the class.
NamedCallback read_callback(const Config& here, const std::string& name) {
  if (!here.peek(name)->is_text()) return {name, read_component(here, name), ""};
  const Config params = here.root().at(join_path(kArguments, name));
  if (!is_script(here.peek(name)->as_text())) {
    return {name, {read_component(here, name).name, params}, ""};
  }
  return {name, {kScript, params}, here.get_path(name)};
}

/// The callbacks that the config names; a name with null is one that a later file switched off.
std::vector<NamedCallback> read_callbacks(const Config& config, std::string_view path) {
  if (const Value* value = config.peek(path);
      value != nullptr && !value->is_null() && !value->is_map()) {
    throw config.error(path,
                       "expected a map of names and callbacks, such as {accuracy: accuracy}, "
                       "found " +
                           value->describe());
  }
  std::vector<NamedCallback> found;
  const Config here = config.at(path);
  for (const auto& name : here.keys()) {
    if (here.has(name)) found.push_back(read_callback(here, name));
  }
  return found;
}

/// The name is a folder beside the outputs.
void check_callback_name(const std::string& name, const Config& config, const std::string& place) {
  try {
    check_file_name("the callback", name);
  } catch (const Error& error) {
    throw config.error(place, error.what());
  }
}

}  // namespace

std::string CallbackArguments::path_of(const std::string& file) const {
  const std::string folder = name.empty() ? root : root + "/" + name;
  make_folders(folder);
  return folder + "/" + file;
}

CallbackRegistry& callbacks() {
  static CallbackRegistry registry("callback");
  return registry;
}

CallbackResults run_callbacks(const Config& config, std::string_view path, const std::string& root,
                              const Dataset& data_in, const EvalFile& data_out) {
  CallbackResults results;
  for (const auto& [name, component, script] : read_callbacks(config, path)) {
    try {
      const CallbackArguments arguments{root,          data_in,          data_out,
                                        config.root(), component.params, name};
      const auto& callback = callbacks().factory(component.name, config, join_path(path, name));
      results.logs.set(name, script.empty() ? callback(arguments) : run_script(arguments, script));
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
  for (const auto& [name, component, script] : read_callbacks(config, path)) {
    const std::string place = join_path(path, name);
    check_callback_name(name, config, place);
    const Config& params = component.params;
    if (component.name == kScript) {
      check_script(script.empty() ? params.get_path("path") : script, config, place, params);
      continue;
    }
    for (const auto& parameter :
         callbacks().registration(component.name, config, place).about.parameters) {
      const bool is_given = params.has(parameter.name);
      if (is_given && parameter.is_path) params.get_path(parameter.name);
    }
  }
}

}  // namespace stepop
