#include "runtime/train/keys/own_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "runtime/core/value/yaml_reader.h"

namespace stepop {
namespace {

/// The keys of a map where a type says more than `map`.
std::vector<std::string_view> keys_below(std::string_view type) {
  if (type == "time") return {"every", "from", "until", "at_start", "at_end", "grow", "up_to"};
  if (type == "list of op") return {"*/op", "*/when", "*/images"};
  return {};
}

/// Calls `found` with each path of the config that `pattern` stands for; `done` is the part that is
/// expanded.
void expand(const Value* value, const std::string& done, std::string_view pattern,
            std::vector<std::string>& found) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) {
    found.push_back(done + std::string(pattern));
    return;
  }
  const std::string_view before = pattern.substr(0, star);  // ends with a slash, or is empty
  if (value != nullptr && !before.empty()) value = value->find(before.substr(0, before.size() - 1));
  if (value == nullptr) return;
  const auto visit = [&](const std::string& name, const Value& item) {
    const std::string path = fmt::format("{}{}{}", done, before, name);
    const std::string_view rest = pattern.substr(star + 1);
    if (rest.empty()) return found.push_back(path);
    expand(&item, path + "/", rest.substr(1), found);
  };
  if (value->is_map()) {
    for (const auto& [name, item] : value->as_map()) visit(name, item);
  } else if (value->is_list()) {
    for (size_t i = 0; i < value->as_list().size(); ++i) {
      visit(std::to_string(i), value->as_list()[i]);
    }
  }
}

/// Whether `pattern` stands for `path`.
bool stands_for(std::string_view pattern, std::string_view path) {
  while (true) {
    const size_t end = pattern.find('/');
    const size_t path_end = path.find('/');
    const std::string_view part = pattern.substr(0, end);
    if (part != "*" && part != path.substr(0, path_end)) return false;
    if (end == std::string_view::npos || path_end == std::string_view::npos) {
      return end == path_end;
    }
    pattern.remove_prefix(end + 1);
    path.remove_prefix(path_end + 1);
  }
}

/// The path of a value, or of the first one in it, that the command line sets.
std::optional<std::string> typed_path(const Value& value, const std::string& path) {
  if (!value.is_null() && value.origin().file == Origin::kCommandLine) return path;
  if (value.is_map()) {
    for (const auto& [key, item] : value.as_map()) {
      if (auto typed = typed_path(item, join_path(path, key))) return typed;
    }
  }
  if (value.is_list()) {
    for (size_t i = 0; i < value.as_list().size(); ++i) {
      if (auto typed = typed_path(value.as_list()[i], fmt::format("{}/{}", path, i))) return typed;
    }
  }
  return std::nullopt;
}

std::string_view top_of(std::string_view path) { return path.substr(0, path.find('/')); }

}  // namespace

const OwnKey* find_own_key(std::string_view path) {
  const std::span keys = own_keys();
  const auto found =
      std::ranges::find_if(keys, [&](const OwnKey& key) { return stands_for(key.path, path); });
  return found == keys.end() ? nullptr : &*found;
}

Value own_default(std::string_view path) {
  const OwnKey* key = find_own_key(path);
  if (key == nullptr) throw std::logic_error(fmt::format("no own key \"{}\"", path));
  const std::string_view text = key->default_value;
  const Value map = parse_yaml(fmt::format("x: {}", text.substr(0, text.find(':'))), {"", 0});
  return *map.find("x");  // without a remark behind it, as in `0: all`
}

template <class T>
T own_key(const Config& config, std::string_view path) {
  const std::string full = join_path(config.path(), path);
  if (!config.has(path)) {
    const Value usual = own_default(full);
    config.note_default(path, usual);
    return Config(Value(Value::Map{{"x", usual}})).get<T>("x");
  }
  const OwnKey* key = find_own_key(full);
  if (key == nullptr) throw std::logic_error(fmt::format("no own key \"{}\"", full));
  Allowed allowed(key->type.range);
  allowed.choices = key->type.choices;
  return ParameterOf<T>::read(config, path, allowed);
}
template bool own_key(const Config&, std::string_view);
template int64_t own_key(const Config&, std::string_view);
template double own_key(const Config&, std::string_view);
template std::string own_key(const Config&, std::string_view);

std::vector<std::string> top_keys_with(unsigned uses) {
  std::vector<std::string> names;
  for (const OwnKey& key : own_keys()) {
    const std::string_view top = top_of(key.path);
    if (!names.empty() && names.back() == top) continue;
    // A row for the whole map counts for all rows below it.
    const OwnKey* whole = find_own_key(top);
    const bool has_all = std::ranges::all_of(own_keys(), [&](const OwnKey& other) {
      return top_of(other.path) != top ||
             ((whole != nullptr ? whole->uses : other.uses) & uses) == uses;
    });
    if (has_all) names.emplace_back(top);
  }
  return names;
}

std::vector<std::string> own_key_paths(const Config& config) {
  std::vector<std::string> paths;
  const Value* root = config.root().peek();
  for (const OwnKey& key : own_keys()) {
    expand(root, "", key.path, paths);
    for (const std::string_view below : keys_below(key.type.kind)) {
      std::vector<std::string> inner;
      expand(root, "", fmt::format("{}/{}", key.path, below), inner);
      for (auto& path : inner) {
        const Value* map = root->find(path.substr(0, path.rfind('/')));
        if (map != nullptr && map->is_map()) paths.push_back(std::move(path));
      }
    }
  }
  return paths;
}

void declare_own_keys(const Config& config) {
  const Config root = config.root();
  for (const auto& path : own_key_paths(root)) {
    const OwnKey* key = find_own_key(path);
    // The code that builds or declares a component knows its keys, and which names there are.
    const bool is_name = key != nullptr && key->path.ends_with('*');
    const bool is_component = key != nullptr && key->type.kind.starts_with("component");
    if (!is_name && !is_component) root.has(path);
  }
}

std::vector<std::string> idle_keys(const Config& config, bool train) {
  const Config root = config.root();
  const unsigned other_mode = train ? kForEvaluation : kForTraining;
  std::vector<std::string> texts;
  std::string reported;  // a map, whose keys follow it
  for (const auto& path : own_key_paths(root)) {
    if (!reported.empty() && path.starts_with(reported + "/")) continue;
    const Value* value = root.peek(path);
    const auto typed = value != nullptr ? typed_path(*value, path) : std::nullopt;
    if (!typed) continue;
    const OwnKey* key = find_own_key(path);
    const OwnKey* whole = find_own_key(top_of(path));
    const unsigned uses = (key != nullptr ? key->uses : 0) | (whole != nullptr ? whole->uses : 0);
    if ((uses & other_mode) == 0) continue;
    reported = path;
    texts.push_back(
        root.error(*typed,
                   train ? "only an evaluation without a training reads this key: leave out -t"
                         : "only a training reads this key: add -t")
            .what());
  }
  return texts;
}

std::string plain_about(std::string_view markdown) {
  std::string text;
  while (!markdown.empty()) {
    // [text](address)
    const size_t end = markdown[0] == '[' ? markdown.find("](") : std::string_view::npos;
    const bool is_link = end != std::string_view::npos && markdown.find('[', 1) > end;
    if (is_link) {
      text += plain_about(markdown.substr(1, end - 1));
      markdown.remove_prefix(std::min(markdown.find(')', end), markdown.size() - 1) + 1);
      continue;
    }
    if (markdown[0] != '`') text += markdown[0];
    markdown.remove_prefix(1);
  }
  return text;
}

}  // namespace stepop
