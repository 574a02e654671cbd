#include "runtime/core/config/resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/number_text.h"
#include "runtime/core/config/config_files.h"
#include "runtime/core/config/merge.h"
#include "runtime/core/config/references.h"

namespace stepop {
namespace {

[[noreturn]] void fail(const Override& override, const std::string& message) {
  throw UsageError(
      fmt::format("{}: --{}: {}", override.value.origin().text(), override.path, message));
}

/// The child of `parent` with the name `part`; made when it is missing.
Value& child(Value& parent, const std::string& part, const Override& override) {
  if (parent.is_list()) {
    auto& list = parent.as_list();
    if (part == "+") return list.emplace_back();
    const int64_t index = list_index(part);
    if (index < 0) {
      fail(override,
           fmt::format("\"{}\" is not a position in a list: give a number from 0, or + to append",
                       part));
    }
    if (index >= static_cast<int64_t>(list.size())) {
      fail(override, fmt::format("the list has {}, counted from 0; + appends one",
                                 counted(list.size(), "element")));
    }
    return list[index];
  }
  if (parent.is_text()) {
    const Origin origin = parent.origin();
    parent = Value(Value::Map{{"class", Value(parent).set_origin(origin)}}).set_origin(origin);
  }
  if (parent.is_null()) {
    parent = (part == "+" ? Value(Value::List{}) : Value(Value::Map{}))
                 .set_origin(override.value.origin());
    if (part == "+") return parent.as_list().emplace_back();
  }
  if (!parent.is_map()) {
    fail(override, fmt::format("cannot set a key in {}, given at {}", parent.describe(),
                               parent.origin().text()));
  }
  if (part == "+") {
    fail(override, fmt::format("+ appends to a list, found {}, given at {}", parent.describe(),
                               parent.origin().text()));
  }
  if (Value* found = parent.as_map().find(part)) return *found;
  return parent.as_map().set(part, Value());
}

bool removes(const Override& override) { return override.value.merge() == Value::Merge::kRemove; }

/// Removes the key, or the list element, at the path `parts`.
void remove(Value& root, const std::vector<std::string>& parts, const Override& override) {
  const std::string& last = parts.back();
  Value* parent = &root;
  for (size_t i = 0; i + 1 < parts.size() && parent != nullptr; ++i)
    parent = parent->find(parts[i]);
  if (parent != nullptr && parent->is_map() && parent->as_map().contains(last)) {
    parent->as_map().erase(last);
    return;
  }
  const int64_t index = parent != nullptr && parent->is_list() ? list_index(last) : -1;
  if (index < 0 || index >= static_cast<int64_t>(parent->as_list().size())) {
    fail(override, "nothing to remove: there is no such key");
  }
  parent->as_list().erase(parent->as_list().begin() + index);
}

/// The name of a callback without a name: that of its class, or of its script without `.py`.
std::string name_of_callback(const Value& callback) {
  const Value* name = callback.is_map() ? callback.as_map().find("class") : &callback;
  if (name == nullptr || !name->is_text()) return "";
  std::string text = name->as_text();
  if (!text.ends_with(".py")) return text;
  text.resize(text.size() - 3);
  return text.substr(text.rfind('/') + 1);
}

/// Turns `eval_callbacks: [accuracy, ...]`, and one callback without a name, into a map of names.
void name_callbacks(Value* evaluation) {
  Value* given = evaluation == nullptr || !evaluation->is_map()
                     ? nullptr
                     : evaluation->as_map().find("eval_callbacks");
  if (given == nullptr || !(given->is_list() || given->is_text())) return;
  Value::Map named;
  for (const Value& callback : given->is_list() ? given->as_list() : Value::List{*given}) {
    const std::string name = name_of_callback(callback);
    if (name.empty()) return;  // reported where callbacks are read
    if (named.contains(name)) {
      throw UsageError(
          fmt::format("{0}: eval_callbacks: two are called \"{1}\"; give them names: {{first: {1}, "
                      "second: {1}}}",
                      callback.origin().text(), name));
    }
    named.set(name, callback);
  }
  const Origin origin = given->origin();
  *given = Value(std::move(named)).set_origin(origin);
}

/// The same for `eval_hook` and all of `evaluations`.
void name_all_callbacks(Value& root) {
  name_callbacks(root.find("eval_hook"));
  Value* evaluations = root.find("evaluations");
  if (evaluations == nullptr || !evaluations->is_map()) return;
  for (auto& [name, evaluation] : evaluations->as_map()) name_callbacks(&evaluation);
}

/// Whether a value is merged with what is there, as in a later file. A component with its class,
/// and an empty map, take the place of what is there.
bool is_part(const Value& value) {
  return value.is_map() && !value.as_map().empty() && !value.as_map().contains("class");
}

}  // namespace

void apply_overrides(Value& root, std::vector<Override> overrides) {
  std::set<std::vector<std::string>> given;
  for (const auto& override : overrides) {
    const auto parts = split_path(override.path);
    const bool appends = std::find(parts.begin(), parts.end(), "+") != parts.end();
    if (!appends && !given.insert(parts).second) fail(override, "given twice; keep one");
  }
  std::stable_sort(overrides.begin(), overrides.end(), [](const auto& a, const auto& b) {
    return split_path(a.path).size() < split_path(b.path).size();
  });
  // Removals come last, and later elements of a list are removed first.
  std::vector<std::pair<std::vector<std::string>, const Override*>> removals;
  for (const auto& override : overrides) {
    const auto parts = split_path(override.path);
    if (parts.empty()) fail(override, "no key given");
    if (parts[0].find('.') != std::string::npos && root.find(parts[0]) == nullptr) {
      std::string with_slashes = override.path;
      std::ranges::replace(with_slashes, '.', '/');
      fail(override, fmt::format("the keys of a path are separated by slashes: --{}; with -w dots "
                                 "are slashes",
                                 with_slashes));
    }
    if (parts.size() > kMaxDepth) fail(override, fmt::format("nested deeper than {}", kMaxDepth));
    for (const auto& part : parts) {
      if (part.size() > kMaxKeyBytes) {
        fail(override, fmt::format("a key of {} bytes; {} at most", part.size(), kMaxKeyBytes));
      }
    }
    if (removes(override)) {
      removals.emplace_back(parts, &override);
      continue;
    }
    Value* place = &root;
    for (const auto& part : parts) place = &child(*place, part, override);
    if (!is_part(override.value)) {
      *place = Value();
    } else if (place->is_text()) {  // the name of a component
      *place = Value(Value::Map{{"class", *place}});
    }
    merge(*place, override.value);
  }
  std::stable_sort(removals.begin(), removals.end(), [](const auto& a, const auto& b) {
    return list_index(a.first.back()) > list_index(b.first.back());
  });
  for (const auto& [parts, override] : removals) remove(root, parts, *override);
}

Value read_config_files(const std::vector<std::string>& files) {
  Value root = Value(Value::Map{});
  for (const auto& file : files) {
    Value read = read_config_file(file);
    name_all_callbacks(read);
    merge(root, read);
  }
  return root;
}

Value resolve_files(Value files, std::vector<Override> overrides,
                    std::set<std::string>* variables) {
  apply_overrides(files, std::move(overrides));
  name_all_callbacks(files);
  resolve_references(files, variables);
  return files;
}

Value resolve_config(const std::vector<std::string>& files, std::vector<Override> overrides) {
  return resolve_files(read_config_files(files), std::move(overrides));
}

}  // namespace stepop
