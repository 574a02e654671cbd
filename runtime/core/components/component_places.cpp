#include "runtime/core/components/component_places.h"

namespace stepop {
namespace {

/// Whether components of this role belong at `.../parent/key`.
bool is_place_of(const std::string& role, const std::string& parent, const std::string& key) {
  return key == role || role.ends_with(" " + key) || parent == role + "s" ||
         (role == "model" && parent == "networks") ||
         (role == "callback" && parent == "eval_callbacks") ||
         (role == "loss term" && parent == "losses");
}

}  // namespace

std::vector<PlacedComponent> components_at(const Value& value, const std::string& path) {
  const auto parts = split_path(path);
  if (parts.empty()) return {};
  const Value* in_class = value.is_map() ? value.as_map().find("class") : nullptr;
  const Value* name = !value.is_map()       ? &value
                      : in_class != nullptr ? in_class
                                            : value.as_map().find("type");
  if (name == nullptr || !name->is_text()) return {};
  const std::string parent = parts.size() > 1 ? parts[parts.size() - 2] : "";
  std::vector<PlacedComponent> in_place, elsewhere;
  for (const Catalogue* catalogue : Catalogue::all()) {
    for (const auto& registration : catalogue->registrations()) {
      if (registration.name != name->as_text()) continue;
      const bool is_there = is_place_of(catalogue->role(), parent, parts.back());
      (is_there ? in_place : elsewhere).push_back({catalogue, &registration});
    }
  }
  return in_place.empty() && in_class != nullptr ? elsewhere : in_place;
}

}  // namespace stepop
