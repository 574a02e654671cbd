#include "eval_out/callbacks/stored_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "eval_out/callbacks/evaluation_callbacks.h"
#include "eval_out/callbacks/python_metric.h"
#include "eval_out/callbacks/script.h"
#include "runtime/core/base/error.h"
#include "runtime/core/base/nearest.h"
#include "runtime/core/config/config_files.h"
#include "runtime/core/config/merge.h"
#include "runtime/core/config/references.h"
#include "runtime/core/value/yaml_reader.h"

namespace stepop {
namespace {

/// The map at `path`; made if it is missing or not a map.
Value::Map& map_at(Value& root, const std::string& path) {
  Value* place = &root;
  for (const auto& part : split_path(path)) {
    if (!place->is_map()) *place = Value(Value::Map{});
    place = &place->as_map()[part];
  }
  if (!place->is_map()) *place = Value(Value::Map{});
  return place->as_map();
}

/// One requested callback, as `name: value` in the config.
OrderedMap<Value>::Entry read_wanted(const std::string& text, const Value::Map& stored) {
  const Value* known = stored.find(text);
  if (known != nullptr && known->is_null()) {
    throw UsageError(
        fmt::format("-c {}: the stored config has switched that callback off; name a "
                    "callback: -c {}:my_callback",
                    text, text));
  }
  if (known != nullptr) return {text, *known};
  const size_t colon = text.find(':');
  std::string callback = colon == std::string::npos ? text : text.substr(colon + 1);
  std::string name = colon == std::string::npos ? text : text.substr(0, colon);
  if (colon == std::string::npos && is_script(text)) {
    name = std::filesystem::path(text).stem().string();
  }
  if (callback.empty() || name.empty() || name.find('/') != std::string::npos || name[0] == '.') {
    throw UsageError(
        fmt::format("-c {}: expected a callback, a name and a callback such as "
                    "my_name:my_callback, or a script such as ./my_report.py",
                    text));
  }
  return {name, Value(callback).set_origin({Origin::kCommandLine, 0})};
}

Value::Map choose(const Value::Map& stored, const std::vector<std::string>& wanted) {
  Value::Map chosen;
  for (const auto& text : wanted) {
    const auto [name, value] = read_wanted(text, stored);
    if (chosen.contains(name)) {
      throw UsageError(
          fmt::format("-c {}: there is a callback \"{}\" already; another name makes "
                      "it a second one: -c my_name:{}",
                      text, name, name));
    }
    chosen.set(name, value);
  }
  if (wanted.empty()) {
    for (const auto& [name, value] : stored) {
      if (!value.is_null()) chosen.set(name, value);
    }
  }
  return chosen;
}

/// Turns `confusion_matrix/normalize` into the place of that callback's parameters in the config.
Override placed(Override given, const Value& root, const Value::Map& chosen) {
  const auto parts = split_path(given.path);
  const std::string first = parts.empty() ? "" : parts[0];
  if (const Value* callback = chosen.find(first); callback != nullptr && parts.size() > 1) {
    given.path = join_path(callback->is_map() ? kEvalCallbacks : kCallbackArguments, given.path);
    return given;
  }
  if (root.as_map().contains(first)) return given;
  std::vector<std::string> names;
  for (const auto& [name, callback] : chosen) names.push_back(name);
  for (const auto& [name, value] : root.as_map()) names.push_back(name);
  const auto near = nearest_names(first, names, 1);
  throw UsageError(fmt::format(
      "--{}: neither a callback of this evaluation ({}) nor a key of the stored config has that "
      "name{}",
      given.path, chosen.key_list(),
      near.empty()
          ? ""
          : fmt::format("; did you mean --{}{}?", near[0], given.path.substr(first.size()))));
}

/// Finds unknown callbacks, scripts and parameters. Only this part of the config is checked; a
/// training's other keys do not matter here.
void check(const Config& config) {
  EvaluationCallbacks(config).declare();
  Value part = Value(Value::Map{});
  for (const auto& name : config.at(kEvalCallbacks).keys()) {
    for (const char* map : {kEvalCallbacks, kCallbackArguments}) {
      const Value* given = config.peek(join_path(map, name));
      if (given != nullptr) map_at(part, map).set(name, *given);
    }
  }
  const Config alone(std::move(part));
  EvaluationCallbacks(alone).declare();
  if (const std::string unknown = alone.unknown_keys(); !unknown.empty()) throw UsageError(unknown);
}

/// The paths of the keys `pipe` below `path`: commands that print shards of a dataset.
void find_pipes(const Value& value, const std::string& path, std::vector<std::string>& found) {
  if (value.is_list()) {
    for (size_t i = 0; i < value.as_list().size(); ++i) {
      find_pipes(value.as_list()[i], join_path(path, std::to_string(i)), found);
    }
  }
  if (!value.is_map()) return;
  for (const auto& [key, inner] : value.as_map()) {
    const std::string place = join_path(path, key);
    if (key == "pipe") found.push_back(place);
    find_pipes(inner, place, found);
  }
}

/// Throws UsageError for a program that only the stored config names.
void check_programs(const Value& root, const Value* trusted, const std::string& file) {
  const auto check_place = [&](const std::string& path, const std::string& remedy) {
    const Value* value = root.find(path);
    if (value == nullptr || value->is_null()) return;
    if (value->origin().file != file) return;  // the user gave this value
    const Value* known = trusted == nullptr ? nullptr : trusted->find(path);
    if (known != nullptr && *known == *value) return;
    throw UsageError(fmt::format(
        "{}: {}: it would run {}, which only the file names: {}. The file may be from anywhere. If "
        "you trust it, name the program yourself: {}",
        file, path, value->describe(),
        trusted == nullptr ? "it is not in the folder of a run" : "the config of its run does not",
        remedy));
  };
  std::vector<std::string> pipes;
  if (const Value* data = root.find("datasets")) find_pipes(*data, "datasets", pipes);
  for (const auto& place : pipes) check_place(place, fmt::format("--{} COMMAND", place));
  for (const auto& [name, callback] : root.find(kEvalCallbacks)->as_map()) {
    const std::string place = join_path(kEvalCallbacks, name);
    const Value* type = callback.is_map() ? callback.find("class") : &callback;
    std::vector<std::pair<const char*, const char*>> keys;  // with what a user gives
    if (callback.is_text() && is_script(callback.as_text())) {
      check_place(place, fmt::format("-c {}:{}", name, callback.as_text()));
    } else if (type != nullptr && *type == Value("Script")) {
      keys = {{"path", "SCRIPT"}};
    } else if (type != nullptr && *type == Value(kPythonMetric)) {
      keys = {{"metric", "METRIC"}, {"kwargs", "KWARGS"}};
    } else {
      continue;
    }
    keys.emplace_back("python", "PYTHON");
    for (const auto& [key, word] : keys) {
      for (const char* map : {kEvalCallbacks, kCallbackArguments}) {
        check_place(join_path(join_path(map, name), key),
                    fmt::format("--{}/{} {}", name, key, word));
      }
    }
  }
}

}  // namespace

Value read_stored_config(const EvalFile& file) {
  const Attribute* found = file.attributes().find("config");
  if (found == nullptr || !std::holds_alternative<std::string>(*found)) return Value(Value::Map{});
  try {
    return parse_yaml(std::get<std::string>(*found), {file.path(), 0});
  } catch (const UsageError& error) {
    throw Error(fmt::format("the config that is stored in the file: {}", error.what()));
  }
}

Config stored_config(const EvalFile& file, const std::vector<std::string>& callbacks,
                     const std::vector<std::string>& base, std::vector<Override> overrides,
                     const Value* trusted) {
  Value root = read_stored_config(file);
  for (const auto& path : base) merge(root, read_config_file(path));
  Value::Map& stored = map_at(root, kEvalCallbacks);
  const Value::Map chosen = choose(stored, callbacks);
  stored = chosen;
  if (chosen.empty()) {
    throw UsageError(
        fmt::format("{}: no callback to run: its config names none; give one with -c, "
                    "`stepop list` shows them",
                    file.path()));
  }
  for (auto& given : overrides) given = placed(std::move(given), root, chosen);
  apply_overrides(root, std::move(overrides));
  resolve_references(root);
  check_programs(root, trusted, file.path());
  Config config(std::move(root));
  make_paths_absolute(config);
  check(config);
  return config;
}

const Dataset& StoredDataset::built() const {
  std::call_once(once_, [this] {
    try {
      if (config_.has(path_)) {
        dataset_ = datasets().build(config_, path_);
      } else {
        problem_ = fmt::format("the dataset is not there: the stored config has no {}", path_);
      }
    } catch (const std::exception& error) {
      problem_ = fmt::format("the dataset cannot be built: {}", error_text(error));
    }
  });
  if (dataset_ == nullptr) throw Error(problem_);
  return *dataset_;
}

}  // namespace stepop
