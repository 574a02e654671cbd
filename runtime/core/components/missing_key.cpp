// The error of a Config for a required key that is missing.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/core/base/nearest.h"
#include "runtime/core/components/foreign_names.h"
#include "runtime/core/config/config.h"

namespace stepop {
namespace {

/// Splits `a/b/c` into `a/b` and `c`.
std::pair<std::string, std::string> parent_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {"", path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

/// The key of a map whose only value is a map or nothing, as in `{Adam: {lr: 1e-3}}`; empty for any
/// other value.
std::string only_map_in(const Value* value) {
  if (value == nullptr || !value->is_map() || value->as_map().size() != 1) return "";
  const auto& [key, only] = *value->as_map().begin();
  return only.is_map() || only.is_null() ? key : "";
}

}  // namespace

void Config::fail_missing(std::string_view path) const {
  const std::string full = join_path(prefix_, path);
  const auto [parent, key] = parent_of(full);
  // Looks for a list or a number in the place of a map.
  for (auto [place, next] = std::pair(parent, key); !place.empty();
       std::tie(place, next) = parent_of(place)) {
    const Value* above = shared_->root.find(place);
    if (above == nullptr || above->is_null()) continue;
    if (above->is_map() || above->is_text()) break;  // a text may be a component's name
    if (above->is_list() && list_index(next) >= 0) break;
    throw root().error(place, fmt::format("expected a map with the key \"{}\", found {}", next,
                                          above->describe()));
  }
  if (const std::string text = foreign_name_of(*this, full); !text.empty()) throw UsageError(text);
  std::vector<std::string> siblings;
  for (const auto& name : Config(shared_, parent).keys()) {
    const std::string sibling = join_path(parent, name);
    if (!shared_->known.contains(sibling)) siblings.push_back(sibling);
  }
  if (const auto nearest = nearest_paths(full, siblings, 1); !nearest.empty()) {
    throw root().error(nearest.front(),
                       fmt::format("did you mean \"{}\", which is missing?", full));
  }
  if (const std::string name = key == "class" ? only_map_in(shared_->root.find(parent)) : "";
      !name.empty()) {
    throw root().error(
        join_path(parent, name),
        fmt::format("did you mean {}: {{class: {}, ...}}? The name of a component is "
                    "its key \"class\", beside its other keys",
                    parent_of(parent).second, name));
  }
  if (const auto other = wrongly_indented(parent, key)) {
    throw error(
        path, fmt::format(
                  "missing; \"{}\" is at {}: if that is the key you mean, correct its indentation",
                  *other, shared_->root.find(*other)->origin().text()));
  }
  throw error(path, "missing; give it in a config, or on the command line as --" + full + " VALUE");
}

std::optional<std::string> Config::wrongly_indented(const std::string& parent,
                                                    const std::string& key) const {
  const auto is_unread = [&](const std::string& place) {
    return shared_->root.find(place) != nullptr && !shared_->known.contains(place);
  };
  for (std::string above = parent; !above.empty();) {
    above = parent_of(above).first;
    if (is_unread(join_path(above, key))) return join_path(above, key);
  }
  for (const auto& sibling : Config(shared_, parent).keys()) {
    const std::string place = join_path(join_path(parent, sibling), key);
    if (is_unread(place)) return place;
  }
  return std::nullopt;
}

}  // namespace stepop
