#include "runtime/data/views/example_function.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

#include "runtime/core/base/error.h"

namespace stepop {

ExampleFunctionRegistry& example_functions() {
  static ExampleFunctionRegistry registry("example function", "function");
  return registry;
}

namespace {

/// Whether `key` is `part` or below it: `target/class` is within `target`.
bool is_within(std::string_view key, std::string_view part) {
  return key == part || (key.starts_with(part) && key[part.size()] == '/');
}

/// The same entries under the new names of their keys.
template <class T>
OrderedMap<T> renamed(const OrderedMap<T>& map, const KeyFunction& function,
                      const std::string& name) {
  OrderedMap<T> changed;
  for (const auto& [key, value] : map) {
    const std::string after = function.key_after(key);
    if (after.empty()) continue;
    if (changed.contains(after)) {
      throw Error(fmt::format("{}: two values would be called \"{}\"", name, after));
    }
    changed.set(after, value);
  }
  return changed;
}

template <class A, class B>
void check_needed(const std::string& name, const std::vector<std::string>& needed, const A& tensors,
                  const B& texts) {
  for (const auto& part : needed) {
    const auto fits = [&](const auto& entry) { return is_within(entry.first, part); };
    if (std::any_of(tensors.begin(), tensors.end(), fits)) continue;
    if (std::any_of(texts.begin(), texts.end(), fits)) continue;
    throw Error(fmt::format("{}: the examples have no \"{}\"; tensors: {}; texts: {}", name, part,
                            tensors.key_list(), texts.key_list()));
  }
}

/// Flattens `{target: {class: label}}` to `target/class` -> `label`: a key in a config has no
/// slash.
void add_names(const Value& keys, const std::string& path, const Config& params,
               OrderedMap<std::string>& names) {
  if (keys.is_text() && !path.empty() && !keys.as_text().empty()) {
    names.set(path, keys.as_text());
  } else if (keys.is_map()) {
    for (const auto& [key, value] : keys.as_map()) {
      add_names(value, join_path(path, key), params, names);
    }
  } else {
    throw params.error(join_path("keys", path), fmt::format("expected the new name of the key, "
                                                            "found {}",
                                                            keys.describe()));
  }
}

OrderedMap<std::string> read_names(const Config& params) {
  OrderedMap<std::string> names;
  if (params.has("keys")) add_names(params.get<Value>("keys"), "", params, names);
  if (names.empty()) {
    throw params.error("keys", "missing: a map of old and new names, such as {image: input}");
  }
  return names;
}

std::vector<std::string> keys_of(const OrderedMap<std::string>& names) {
  std::vector<std::string> keys;
  for (const auto& [key, name] : names) keys.push_back(key);
  return keys;
}

/// Renames keys.
class Rename : public KeyFunction {
 public:
  struct Params {
    OrderedMap<std::string> names;

    void declare(Parameters& p) {
      const Config* config = p.describe_required(
          "keys", "map", "old -> new, {image: input, left: {class: target/class}}");
      if (config != nullptr) names = read_names(*config);
    }
  };

  explicit Rename(const Params& params)
      : KeyFunction("rename", keys_of(params.names)), names_(params.names) {}

  std::string key_after(const std::string& key) const override {
    for (const auto& [old, name] : names_) {
      if (is_within(key, old)) return name + key.substr(old.size());
    }
    return key;
  }

 private:
  OrderedMap<std::string> names_;
};

/// Keeps some of the keys.
class Select : public KeyFunction {
 public:
  struct Params {
    std::optional<std::vector<std::string>> keys;
    std::optional<std::vector<std::string>> drop;

    void declare(Parameters& p) {
      p.add("keys", keys, "a list of those that stay");
      p.add("drop", drop, "instead: a list of those that do not");
    }
    std::vector<std::string> listed() const {
      return drop.value_or(keys.value_or(std::vector<std::string>()));
    }
  };

  Select(const Params& params, const Config& config)
      : KeyFunction("select", params.listed()),
        keys_(params.listed()),
        drops_(params.drop.has_value()) {
    if (params.keys.has_value() == drops_) {
      throw config.error("", "select needs either `keys`, which stay, or `drop`, which do not");
    }
  }

  std::string key_after(const std::string& key) const override {
    const bool is_listed = std::any_of(keys_.begin(), keys_.end(),
                                       [&](const auto& part) { return is_within(key, part); });
    return is_listed == drops_ ? "" : key;
  }

 private:
  std::vector<std::string> keys_;
  bool drops_;
};

STEPOP_REGISTER_EXAMPLE_FUNCTION(rename, Rename, {"Other names for keys, and for all below them."});
STEPOP_REGISTER_EXAMPLE_FUNCTION(select, Select,
                                 {"Keeps some keys, with all below them, or drops them."});

}  // namespace

Example KeyFunction::operator()(Example example, Random& /*random*/) const {
  check_needed(name_, needed_, example.tensors, example.texts);
  return {.tensors = renamed(example.tensors, *this, name_),
          .texts = renamed(example.texts, *this, name_)};
}

Batch KeyFunction::apply(const Batch& batch) const {
  check_needed(name_, needed_, batch.tensors(), batch.texts());
  return {renamed(batch.tensors(), *this, name_), renamed(batch.texts(), *this, name_),
          batch.indices()};
}

}  // namespace stepop
