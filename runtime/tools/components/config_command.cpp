// `stepop config`: the resolved config, its paths, or a table of all keys of its components.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/components/component_places.h"
#include "runtime/core/components/registry.h"
#include "runtime/core/config/config.h"
#include "runtime/core/config/references.h"
#include "runtime/core/config/resolve.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/core/value/yaml_writer.h"
#include "runtime/tools/cli/command.h"
#include "runtime/tools/components/config_paths.h"
#include "runtime/tools/components/config_schema.h"
#include "runtime/tools/start/run_source.h"
#include "runtime/train/keys/own_keys.h"

namespace stepop {
namespace {

/// A line of the table of keys.
struct Key {
  std::string path;
  std::string type;
  std::string value;  ///< The config's value, or the default in parentheses.
  std::string about;
};

const char* type_of(const Value& value) {
  if (value.is_bool()) return "bool";
  if (value.is_int()) return "int";
  if (value.is_float()) return "float";
  if (value.is_text()) return "text";
  if (value.is_list()) return "list";
  return value.is_map() ? "map" : "any";
}

/// The type of a parameter that the config leaves out.
std::string type_of_default(const Parameter& parameter) {
  if (parameter.is_path) return "path";
  try {
    const Value read = parse_yaml("x: " + parameter.default_value, {"", 0});
    return type_of(*read.find("x"));
  } catch (const UsageError&) {
    return "text";  // the default is a sentence
  }
}

const Registration* integration_at(const std::string& path) {
  const auto parts = split_path(path);
  if (parts.size() != 2 || parts[0] != "integrations") return nullptr;
  for (const Catalogue* catalogue : Catalogue::all()) {
    if (catalogue->role() != "integration") continue;
    for (const auto& each : catalogue->registrations()) {
      if (each.name == parts[1]) return &each;
    }
  }
  return nullptr;
}

/// All keys of a config, then all further keys of its components, then those of the runtime.
class Keys {
 public:
  explicit Keys(const Config& config) : root_(*config.peek()) {
    visit(*config.peek(), "");
    for (const auto& path : own_key_paths(config)) {
      const OwnKey* key = find_own_key(path);
      const bool is_there = std::ranges::any_of(keys_, [&](const Key& other) {
        return other.path == path || other.path.starts_with(path + "/");
      });
      if (key == nullptr || is_there) continue;
      keys_.push_back({path, key->type.text(),
                       key->default_value == "required" ? "(must be given)"
                       : key->default_value == "-"
                           ? "(none)"
                           : fmt::format("({})", plain_about(key->default_value)),
                       plain_about(key->about)});
    }
  }

  void print() const {
    size_t widths[3] = {};
    for (const auto& key : keys_) {
      widths[0] = std::max(widths[0], key.path.size());
      widths[1] = std::max(widths[1], key.type.size());
      widths[2] = std::max(widths[2], std::min<size_t>(key.value.size(), kWidest));
    }
    for (const auto& key : keys_) {
      std::string line = fmt::format("{:<{}}  {:<{}}  {:<{}}  {}", key.path, widths[0], key.type,
                                     widths[1], key.value, widths[2], key.about);
      line.erase(line.find_last_not_of(' ') + 1);
      fmt::print("{}\n", line);
    }
  }

 private:
  static constexpr size_t kWidest = 40;

  void visit(const Value& value, const std::string& path) {
    if (!path.empty() && !value.is_map()) {
      const OwnKey* own = find_own_key(path);
      keys_.push_back({path, type_of(value), flow_yaml(value),
                       own != nullptr ? plain_about(own->about) : about_[path]});
    }
    const std::vector<Key> defaults = keys_of_components(value, path);
    if (value.is_map()) {
      for (const auto& [key, item] : value.as_map()) visit(item, join_path(path, key));
    }
    keys_.insert(keys_.end(), defaults.begin(), defaults.end());
  }

  /// The keys of the components at a path that the config leaves out.
  std::vector<Key> keys_of_components(const Value& value, const std::string& path) {
    std::vector<Key> left_out;
    if (path.empty() || path.ends_with("/class")) return left_out;
    std::vector<const Registration*> found;
    for (const auto& component : components_at(value, path))
      found.push_back(component.registration);
    if (const Registration* integration = integration_at(path)) found.push_back(integration);
    for (const auto* component : found) {
      const bool has_class = value.find("class") != nullptr;
      if (value.is_map())
        about_[path + (has_class ? "/class" : "/type")] = component->about.summary;
      if (!value.is_map()) keys_.back().about = component->about.summary;
      for (const auto& parameter : component->about.parameters) {
        add(value, path, parameter, left_out);
      }
    }
    return left_out;
  }

  void add(const Value& value, const std::string& path, const Parameter& parameter,
           std::vector<Key>& left_out) {
    const bool is_of_iterator = path == "iterator";  // whose parameters are keys of the config
    const std::string full = is_of_iterator ? parameter.name : join_path(path, parameter.name);
    about_[full] = parameter.about;
    const Value& given = is_of_iterator ? root_ : value;
    const bool is_given = given.is_map() && given.find(parameter.name) != nullptr;
    if (is_given) return;
    const bool is_needed = parameter.default_value.empty();
    left_out.push_back({full, is_needed ? "" : type_of_default(parameter),
                        is_needed ? "(must be given)" : "(" + parameter.default_value + ")",
                        parameter.about});
  }

  const Value& root_;
  std::vector<Key> keys_;
  std::map<std::string, std::string> about_;
};

int config_command(const Arguments& arguments, const ConfigFlags& own) {
  if (int{own.keys} + int{own.paths} + int{own.schema} > 1) {
    throw UsageError("stepop config: give one of --keys, --paths and --schema");
  }
  if (own.schema && arguments.base.empty()) {
    fmt::print("{}\n", config_schema(/*is_strict=*/false, registered_components()));
    return 0;
  }
  if (arguments.base.empty()) {
    throw UsageError("no config given: stepop config -b base.yaml" + keys_taken(arguments));
  }
  if (own.paths) return print_config_paths(arguments);
  const Config config(resolve_config(arguments.base, arguments.overrides));
  const std::set<std::string> built_in = registered_components();
  load_code(config, "", Optimization::kQuick);
  if (own.schema) {
    fmt::print("{}\n", config_schema(/*is_strict=*/true, built_in));
    return 0;
  }
  if (own.keys) {
    Keys(config).print();
    return 0;
  }
  make_paths_absolute(config);
  fmt::print("{}", to_yaml(escape_references(*config.peek())));
  return 0;
}

STEPOP_REGISTER_COMMAND(config_command, ConfigFlags, kConfigCommand);

}  // namespace

}  // namespace stepop
