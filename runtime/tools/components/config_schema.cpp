#include "runtime/tools/components/config_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/json_text.h"
#include "runtime/core/base/ordered_map.h"
#include "runtime/core/components/registry.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/train/keys/own_keys.h"
#include "runtime/train/when/duration.h"

namespace stepop {
namespace {

using Json = nlohmann::ordered_json;

Json any_of(Json::array_t choices) {
  return choices.size() == 1 ? choices.front() : Json{{"anyOf", std::move(choices)}};
}

Json text_like(const char* pattern) { return {{"type", "string"}, {"pattern", pattern}}; }

Json span() { return any_of({{{"type", "number"}, {"minimum", 0}}, text_like(kDurationPattern)}); }

/// A map that has these keys alone.
Json closed(Json properties) {
  return {
      {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
}

/// What may stand in the place of any value: null, as for a missing key, and a reference.
Json with_common(Json schema) {
  return any_of({std::move(schema), {{"type", "null"}}, text_like("\\{")});
}

std::string reference(const std::string& name) {
  std::string text = "#/definitions/" + name;
  for (size_t at = text.find(' '); at != std::string::npos; at = text.find(' ')) text[at] = '_';
  return text;
}

Json time_or_map() {
  Json keys;
  for (const char* key : {"every", "from", "until", "up_to"}) keys[key] = with_common(span());
  for (const char* key : {"at_start", "at_end"}) {
    keys[key] = with_common({{"type", "boolean"}});
  }
  keys["grow"] = with_common({{"type", "number"}});
  return any_of({span(), closed(std::move(keys))});
}

Json op() {
  return any_of({text_like("^[^/]+/.+"), closed({{"op", {{"type", "string"}}},
                                                 {"when", with_common(time_or_map())},
                                                 {"images", with_common({{"type", "object"}})}})});
}

Json single_type(std::string_view kind, const Range& range) {
  constexpr std::string_view kListOf = "list of ";
  constexpr std::string_view kComponent = "component ";
  if (kind.starts_with(kListOf)) {
    return {{"type", "array"},
            {"items", with_common(single_type(kind.substr(kListOf.size()), range))}};
  }
  if (kind.starts_with(kComponent)) {
    return {{"$ref", reference(std::string(kind.substr(kComponent.size())))}};
  }
  if (kind == "int" || kind == "number") {
    Json schema = {{"type", kind == "int" ? "integer" : "number"}};
    if (range.lowest > Range().lowest) {
      schema[range.has_lowest ? "minimum" : "exclusiveMinimum"] = range.lowest;
    }
    if (range.highest < Range().highest) {
      schema[range.has_highest ? "maximum" : "exclusiveMaximum"] = range.highest;
    }
    return schema;
  }
  if (kind == "bool") return {{"type", "boolean"}};
  if (kind == "text" || kind == "path" || kind == "regex") return {{"type", "string"}};
  if (kind == "list") return {{"type", "array"}};
  if (kind == "map") return {{"type", "object"}};
  if (kind == "op") return op();
  if (kind == "span") return span();
  if (kind == "clock") return text_like("^([0-9.]+[dhms])+$");
  if (kind == "schedule") return any_of({{{"type", "number"}}, {{"$ref", reference("schedule")}}});
  if (kind == "time") return time_or_map();
  if (kind == "any") return Json::object();
  throw Error(fmt::format("the kind \"{}\" of a parameter has no schema", kind));
}

Json schema_of(const ParameterType& type) {
  Json::array_t choices;
  const bool is_choice = !type.choices.empty();
  std::string_view kinds = is_choice && type.kind == "text" ? "" : std::string_view(type.kind);
  while (!kinds.empty()) {
    const size_t end = std::min(kinds.find(" | "), kinds.size());
    choices.push_back(single_type(kinds.substr(0, end), type.range));
    kinds.remove_prefix(std::min(end + 3, kinds.size()));
  }
  if (is_choice) choices.push_back({{"enum", type.choices}});
  return any_of(std::move(choices));
}

std::string description(std::string_view about, std::string_view default_value) {
  std::string text = plain_about(about);
  const bool has_default = !default_value.empty() && default_value != "-";
  if (has_default) text += fmt::format(" (default: {})", plain_about(default_value));
  return text;
}

/// The runtime's own keys as a tree: a map for each part of their paths.
struct Node {
  const OwnKey* key = nullptr;
  OrderedMap<Node> below;
};

constexpr std::string_view kComponent = "component ";

/// A map, or a list, of what is below a node.
Json schema_of_children(const Node& node, bool is_list);

Json schema_of(const Node& node) {
  const ParameterType type = node.key == nullptr ? ParameterType{"map"} : node.key->type;
  const std::string& kind = type.kind;
  Json schema;
  if (node.below.empty() || kind.starts_with(kComponent)) {
    schema = schema_of(type);  // a component's definition has the keys below it
  } else if (kind == "map | list") {
    schema = any_of({schema_of_children(node, false), schema_of_children(node, true)});
  } else if (kind == "map" || kind == "list") {
    schema = schema_of_children(node, kind == "list");
  } else {
    schema = any_of({schema_of(type), schema_of_children(node, false)});
  }
  const bool is_any = schema.empty();
  Json result = is_any ? Json::object() : with_common(std::move(schema));
  if (node.key != nullptr) {
    result["description"] = description(node.key->about, node.key->default_value);
  }
  return result;
}

Json schema_of_children(const Node& node, bool is_list) {
  Json properties = Json::object();
  for (const auto& [name, child] : node.below) {
    if (name != "*") {
      properties[name] = schema_of(child);
    } else if (is_list) {
      return {{"type", "array"}, {"items", schema_of(child)}};
    } else {
      return {{"type", "object"}, {"additionalProperties", schema_of(child)}};
    }
  }
  return closed(std::move(properties));
}

/// What a parameter may be: its type, or as far as its default tells, of which only a switch is
/// sure to be one.
Json schema_of(const Parameter& parameter) {
  Json schema = Json::object();
  if (!parameter.type.kind.empty()) {
    Json own = schema_of(parameter.type);
    if (!own.empty()) schema = with_common(std::move(own));
  } else {
    try {
      const Value value = *parse_yaml("x: " + parameter.default_value, {"", 0}).find("x");
      if (value.is_bool()) schema = with_common({{"type", "boolean"}});
    } catch (const UsageError&) {  // the default is a sentence
    }
  }
  schema["description"] = description(parameter.about, parameter.default_value);
  return schema;
}

/// The parameters as properties; a name with slashes is a place in maps.
Json properties_of(const std::vector<Parameter>& parameters) {
  Json properties = Json::object();
  for (const auto& parameter : parameters) {
    Json* here = &properties;
    const std::vector<std::string> parts = split_path(parameter.name);
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      Json& map = (*here)[parts[i]];
      if (!map.contains("properties")) map = closed(Json::object());
      here = &map["properties"];
    }
    if (parts.back() == "<name>") {  // of a map of any names
      Json& map = properties[parts[parts.size() - 2]];
      map = {{"type", "object"}, {"additionalProperties", schema_of(parameter)}};
    } else {
      (*here)[parts.back()] = schema_of(parameter);
    }
  }
  return properties;
}

/// The runtime's own keys within components of a kind, as `when` of a hook, by kind.
void add_own_keys(const Node& node, OrderedMap<Json>& of_kinds) {
  const std::string_view type = node.key == nullptr ? "" : std::string_view(node.key->type.kind);
  for (const auto& [name, child] : node.below) {
    if (type.starts_with(kComponent)) {
      of_kinds[std::string(type.substr(kComponent.size()))][name] = schema_of(child);
    }
    add_own_keys(child, of_kinds);
  }
}

/// `own`: keys that components of this kind have besides their parameters.
Json schema_of(const Registration& component, bool is_declared, const Json& own) {
  Json schema = {{"description", component.about.summary}};
  if (!is_declared) return schema;
  Json properties = properties_of(component.about.parameters);
  for (const auto& item : own.items()) properties[item.key()] = item.value();
  for (const char* name : {"class", "type"}) {
    if (!properties.contains(name)) properties[name] = true;
  }
  schema.update(closed(std::move(properties)));
  return schema;
}

std::string full_name(const Catalogue& catalogue, const Registration& component) {
  return fmt::format("{}:{}", catalogue.role(), component.name);
}

/// Whether a component has named all parameters that it takes.
bool is_declared(const Catalogue& catalogue, const Registration& component,
                 const std::set<std::string>& built_in) {
  if (!component.about.parameters.empty()) return true;
  return !component.about.summary.empty() && built_in.contains(full_name(catalogue, component));
}

/// A component of a kind: its name, or a map with `class`.
Json schema_of(const Catalogue& catalogue, bool is_strict) {
  Json names = Json::array();
  Json cases = Json::array();
  for (const auto& registration : catalogue.registrations()) {
    names.push_back(registration.name);
    cases.push_back({{"if",
                      {{"required", Json::array({"class"})},
                       {"properties", {{"class", {{"const", registration.name}}}}}}},
                     {"then", {{"$ref", reference(full_name(catalogue, registration))}}}});
  }
  Json::array_t choices = {is_strict ? text_like("\\{|\\.py$") : Json{{"type", "string"}}};
  if (!names.empty()) choices.insert(choices.begin(), Json{{"enum", std::move(names)}});
  const Json name = any_of(std::move(choices));
  Json map = {{"properties", {{"class", name}}}};
  if (!cases.empty()) map["allOf"] = std::move(cases);
  return {{"if", {{"type", "object"}}},
          {"then", std::move(map)},
          {"else", any_of({name, {{"type", "null"}}})}};
}

/// The top of a config: its own keys, and with a known iterator no others than that one's.
Json schema_of_top(const Node& root, const std::set<std::string>& built_in) {
  Json own = schema_of_children(root, false)["properties"];
  Json cases = Json::array();
  for (const Catalogue* catalogue : Catalogue::all()) {
    if (catalogue->role() != "iterator") continue;
    for (const auto& iterator : catalogue->registrations()) {
      if (!is_declared(*catalogue, iterator, built_in)) continue;
      Json known = properties_of(iterator.about.parameters);
      for (const auto& item : own.items()) known[item.key()] = true;
      const Json is_it = any_of({{{"const", iterator.name}},
                                 {{"type", "object"},
                                  {"required", Json::array({"class"})},
                                  {"properties", {{"class", {{"const", iterator.name}}}}}}});
      cases.push_back(
          {{"if", {{"required", Json::array({"iterator"})}, {"properties", {{"iterator", is_it}}}}},
           {"then", closed(std::move(known))}});
    }
  }
  return {{"type", "object"}, {"properties", std::move(own)}, {"allOf", std::move(cases)}};
}

}  // namespace

std::set<std::string> registered_components() {
  std::set<std::string> names;
  for (const Catalogue* catalogue : Catalogue::all()) {
    for (const auto& component : catalogue->registrations()) {
      names.insert(full_name(*catalogue, component));
    }
  }
  return names;
}

std::string config_schema(bool is_strict, const std::set<std::string>& built_in) {
  Node root;
  for (const OwnKey& key : own_keys()) {
    Node* node = &root;
    for (const auto& part : split_path(key.path)) node = &node->below[part];
    node->key = &key;
  }
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                 {"title", "A config of stepop"}};
  schema.update(schema_of_top(root, built_in));
  Json& definitions = schema["definitions"];
  OrderedMap<Json> own;
  add_own_keys(root, own);
  for (const Catalogue* catalogue : Catalogue::all()) {
    const auto define = [&](const std::string& name, Json definition) {
      definitions[reference(name).substr(reference("").size())] = std::move(definition);
    };
    define(catalogue->role(), schema_of(*catalogue, is_strict));
    for (const auto& registration : catalogue->registrations()) {
      define(full_name(*catalogue, registration),
             schema_of(registration, is_declared(*catalogue, registration, built_in),
                       own[catalogue->role()]));
    }
  }
  return write_json(schema, 1);
}

}  // namespace stepop
