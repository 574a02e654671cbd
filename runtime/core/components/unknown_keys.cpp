// The keys of a Config that were never read.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/nearest.h"
#include "runtime/core/base/text.h"
#include "runtime/core/components/component_places.h"
#include "runtime/core/components/foreign_names.h"
#include "runtime/core/config/config.h"

namespace stepop {
namespace {

/// Whether `path` is `ancestor` or lies below it.
bool is_below(std::string_view path, std::string_view ancestor) {
  return ancestor.empty() || (path.starts_with(ancestor) &&
                              (path.size() == ancestor.size() || path[ancestor.size()] == '/'));
}

/// For an unknown key next to a `class` from another file: the key may be left over from the
/// previous component. Empty for any other key.
std::string class_of_another_file(const Value& root, const std::string& path, const Value& value) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return "";
  const std::string component = path.substr(0, slash);
  const Value* name = root.find(component + "/class");
  if (name == nullptr || !name->is_text() || name->origin().file == value.origin().file) return "";
  return fmt::format(
      "{} is {} since {}, which has no such key; \"!replace\" before the map there keeps nothing "
      "of the one before",
      component, name->as_text(), name->origin().text());
}

struct Readers {
  std::string text = {};            ///< Empty when no component reads the key.
  bool is_registered_here = false;  ///< By the very component that has the key.
};

/// The components of the role at that place that register the key. The top-level keys are those of
/// iterators.
Readers readers_of(const Value& root, const std::string& path,
                   const std::vector<std::string>& known) {
  const size_t slash = path.rfind('/');
  const bool is_at_top = slash == std::string::npos;
  const std::string place = is_at_top ? "iterator" : path.substr(0, slash);
  const std::string key = is_at_top ? path : path.substr(slash + 1);
  const Value* component = root.find(place);
  if (component == nullptr) return {};
  for (const auto& [catalogue, here] : components_at(*component, place)) {
    std::vector<std::string> names;
    for (const auto& [name, about, file, line] : catalogue->registrations()) {
      const bool reads = std::any_of(about.parameters.begin(), about.parameters.end(),
                                     [&](const auto& each) { return each.name == key; });
      if (reads) names.push_back(name);
    }
    if (names.empty()) continue;
    if (std::ranges::find(names, here->name) != names.end()) {
      const auto near = nearest_paths(path, known, 1);
      const bool is_beside = !is_at_top && !near.empty() && near.front().starts_with(place + "/");
      return {fmt::format("{} registers it, but its code does not read it{}", here->name,
                          is_beside ? fmt::format("; it reads \"{}\"", near.front()) : ""),
              true};
    }
    return {fmt::format("{} {} it, but not {}, which is the {} here", list_text(names),
                        names.size() == 1 ? "reads" : "read", here->name, catalogue->role())};
  }
  return {};
}

/// What is wrong with the unread key `path`, and what would help: first by its meaning, then by its
/// spelling.
std::string help_for(const Value& root, const std::string& path, const Value& value,
                     const std::vector<std::string>& known) {
  const std::string beside = path.substr(0, path.rfind('/') + 1) + "class";
  const bool is_in_component = std::find(known.begin(), known.end(), beside) != known.end();
  std::string with_slashes = path;
  std::replace(with_slashes.begin(), with_slashes.end(), '.', '/');
  const std::string first = with_slashes.substr(0, with_slashes.find('/'));
  if (path.find('.') != std::string::npos && path.find('/') == std::string::npos &&
      std::find(known.begin(), known.end(), first) != known.end()) {
    return fmt::format(
        "did you mean \"{}\"? The keys of a path are separated by slashes, as in --{} VALUE, or "
        "one "
        "below the other in a file",
        with_slashes, with_slashes);
  }
  const auto [readers, is_registered_here] = readers_of(root, path, known);
  if (is_registered_here) return readers;
  const std::string other = class_of_another_file(root, path, value);
  if (!other.empty() && !readers.empty()) return other;
  const auto nearest = nearest_paths(path, known, 1);
  const bool is_plural = !nearest.empty() && (nearest[0] == path + "s" || path == nearest[0] + "s");
  if (is_plural) return fmt::format("did you mean \"{}\"?", nearest[0]);
  if (std::string text = foreign_hint(path, is_in_component); !text.empty()) return text;
  if (nearest.empty() && !other.empty()) return other;
  if (!readers.empty()) return readers;
  if (!nearest.empty()) return fmt::format("did you mean \"{}\"?", nearest.front());
  return "no component of this run reads it; a note of your own goes below extra/";
}

}  // namespace

std::vector<std::string> Config::known_paths() const {
  const auto guard = lock();
  return {shared_->known.begin(), shared_->known.end()};
}

std::string Config::unknown_keys() const {
  const auto guard = lock();
  std::string message;
  std::vector<std::string> known = known_paths();
  for (const auto& path : known_paths()) {  // a map with a known key is also known
    for (size_t slash = path.find('/'); slash != std::string::npos;
         slash = path.find('/', slash + 1)) {
      known.push_back(path.substr(0, slash));
    }
  }

  const auto claimed = [&](const std::string& path) {
    for (const auto& claim : shared_->claimed) {
      if (is_below(path, claim)) return true;
    }
    return is_below(path, "extra");
  };
  const auto is_read_below = [&](const std::string& path) {
    const auto next = shared_->known.lower_bound(path + "/");
    return next != shared_->known.end() && is_below(*next, path);
  };

  constexpr int kMostShown = 20;  // a data file, given by mistake, may have a million
  int unknown = 0;
  // Finds the highest unread key of each part.
  const auto visit = [&](auto& self, const Value& value, const std::string& path) -> void {
    if (claimed(path)) return;
    const bool read_below = is_read_below(path);
    if (value.is_map() && (path.empty() || shared_->known.contains(path) || read_below)) {
      for (const auto& [key, item] : value.as_map()) self(self, item, join_path(path, key));
      return;
    }
    if (value.is_list() && read_below) {
      const auto& list = value.as_list();
      for (size_t i = 0; i < list.size(); ++i) {
        self(self, list[i], join_path(path, std::to_string(i)));
      }
      return;
    }
    if (path.empty() || shared_->known.contains(path)) return;
    if (read_below && value.is_null()) return;  // `optimizer:` without any keys
    if (++unknown > kMostShown) return;
    if (read_below) {
      const bool has_switch = value.is_bool() && shared_->known.contains(path + "/active");
      message += fmt::format("{}{}: {}: expected a map{}, found {}", message.empty() ? "" : "\n",
                             value.origin().text(), path,
                             has_switch ? " such as {active: " + value.describe() + "}" : "",
                             value.describe());
      return;
    }
    message +=
        fmt::format("{}{}: unknown key \"{}\": {}", message.empty() ? "" : "\n",
                    value.origin().text(), path, help_for(shared_->root, path, value, known));
  };
  visit(visit, shared_->root, "");
  if (unknown > kMostShown) message += fmt::format("\n... and {} more", unknown - kMostShown);
  return message;
}

}  // namespace stepop
