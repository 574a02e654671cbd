#include "eval_out/callbacks/evaluation_callbacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <utility>

#include "eval_out/callbacks/python_metric.h"
#include "eval_out/callbacks/script.h"
#include "runtime/core/base/error.h"
#include "runtime/core/log/log_files.h"
#include "runtime/core/system/file_calls.h"

namespace stepop {
namespace {

/// All scalars of one callback, under their full names.
OrderedMap<double> scalars_of_callback(const std::string& prefix, const Logs& logs) {
  OrderedMap<double> scalars;
  for (const auto& [key, value] : logs.scalars) {
    const std::string full = fmt::format("{}/{}", prefix, key);
    scalars.set(full, value.read(full));
  }
  return scalars;
}

/// The class that runs scripts.
constexpr const char* kScript = "Script";

/// Checks a callback's name, which becomes a folder beside the outputs.
void check_callback_name(const std::string& name, const Config& config, const std::string& place) {
  try {
    check_file_name("the callback", name);
  } catch (const Error& error) {
    throw config.error(place, error.what());
  }
}

}  // namespace

EvaluationCallbacks::EvaluationCallbacks(const Config& config, std::string place)
    : config_(config.root()), place_(std::move(place)) {
  if (const Value* value = config.peek(place_);
      value != nullptr && !value->is_null() && !value->is_map()) {
    throw config.error(place_,
                       "expected callbacks, [accuracy], or a map of names and callbacks, such as "
                       "{accuracy: accuracy}, found " +
                           value->describe());
  }
  const Config here = config.at(place_);
  for (const auto& name : here.keys()) {
    if (here.has(name)) callbacks_.push_back(read(config, here, name));
  }
}

/// Reads one callback: `accuracy`, `./my_report.py`, or a map with the class.
EvaluationCallbacks::Named EvaluationCallbacks::read(const Config& config, const Config& here,
                                                     const std::string& name) const {
  const std::string place = join_path(place_, name);
  Named found{.name = name, .callback = kScript, .params = {}, .script = "", .function = {}};
  const bool is_map = !here.peek(name)->is_text();
  if (!is_map && is_script(here.peek(name)->as_text())) {
    found.params = here.root().at(join_path(kCallbackArguments, name));
    found.script = here.get_path(name);
    found.function = [script = found.script](const CallbackArguments& arguments) {
      return run_script(arguments, script);
    };
    return found;
  }
  const Component component = read_component(here, name);
  found.callback = component.name;
  found.params = is_map ? component.params : here.root().at(join_path(kCallbackArguments, name));
  found.function = callbacks().factory(found.callback, config, place);
  return found;
}

void EvaluationCallbacks::declare() const {
  for (const auto& [name, callback, params, script, function] : callbacks_) {
    const std::string place = join_path(place_, name);
    check_callback_name(name, config_, place);
    if (callback == kScript) {
      check_script(script.empty() ? params.get_path("path") : script, config_, place, params);
      continue;
    }
    if (callback == kPythonMetric) check_python_metric(config_, place, params);
    if (const CallbackCheck* check = callback_checks().find(callback)) (*check)(params);
    for (const auto& parameter :
         callbacks().registration(callback, config_, place).about.parameters) {
      const bool is_given = params.has(parameter.name);
      if (is_given && parameter.is_path) params.get_path(parameter.name);
    }
  }
}

CallbackResults EvaluationCallbacks::call(const std::string& folder, const Dataset& data_in,
                                          const EvalFile& data_out, const Wanted& wanted) const {
  CallbackResults results;
  for (const auto& callback : callbacks_) {
    const Cost cost = callback.callback == kScript         ? Cost::kScript
                      : callback.callback == kPythonMetric ? Cost::kPython
                                                           : Cost::kSmall;
    if (wanted && !wanted(callback.name, cost)) continue;
    try {
      results.logs.set(callback.name, callback.function({folder, data_in, data_out, config_,
                                                         callback.params, callback.name}));
    } catch (const Interrupted&) {
      throw;
    } catch (const DiskError&) {
      throw;  // a full disk is not the callback's fault: all callbacks run again once there is room
    } catch (const NoNumbers& reason) {
      results.silent.set(callback.name, reason.what());
    } catch (const std::exception& error) {
      results.failures.set(callback.name, error_text(error));
    } catch (...) {
      results.failures.set(callback.name, "it threw something other than a std::exception");
    }
  }
  return results;
}

CallbackScalars EvaluationCallbacks::run(const std::string& op, int64_t step,
                                         const std::string& folder, const Dataset& data_in,
                                         const EvalFile& data_out) const {
  CallbackResults results = call(folder, data_in, data_out);
  CallbackScalars found{{}, std::move(results.failures), std::move(results.silent)};
  for (const auto& [name, logs] : results.logs) {
    OrderedMap<double> scalars;
    UnfinishedLog files;
    try {
      scalars = scalars_of_callback(fmt::format("{}/{}", op, name), logs);
      add_files(files, name, logs);
      make_pictures(files);
    } catch (const std::exception& error) {
      found.failures.set(name, error_text(error));
      continue;
    }
    for (const auto& [key, value] : scalars) found.scalars.set(key, value);
    write_log_files(folder, step, files.record);
  }
  return found;
}

}  // namespace stepop
