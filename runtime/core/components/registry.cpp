#include "runtime/core/components/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <tuple>

#include "runtime/core/base/nearest.h"
#include "runtime/core/components/foreign_names.h"
#include "runtime/core/value/yaml_writer.h"

namespace stepop {
namespace {

/// The advice for a name that is not near any known name.
std::string own_hint(const std::string& role) {
  std::string macro = "STEPOP_REGISTER_" + role;
  std::transform(macro.begin(), macro.end(), macro.begin(),
                 [](unsigned char c) { return c == ' ' ? '_' : std::toupper(c); });
  return fmt::format(
      "; one of your own is registered by {} in a file that `code: [file.cpp]` names", macro);
}

/// How a config names a component of each role; `{}` is the component.
struct PlaceOfRole {
  std::string_view role;
  std::string_view place;
};
constexpr PlaceOfRole kPlaces[] = {
    {"augmentation", "{{class: Augment, dataset: ..., augmentations: [{}]}}"},
    {"callback", "eval_hook: {{eval_callbacks: {{NAME: {}}}}}"},
    {"dataset", "datasets: {{train: {}}}"},
    {"evaluator", "eval: {{evaluators: {{NAME: {{type: ...}}}}}}"},
    {"example function", "{{class: Map, dataset: ..., function: {}}}"},
    {"functor", "eval_functor: {}"},
    {"hook", "hooks: {{NAME: {}}}"},
    {"integration", "integrations: {{{}: {{active: true}}}}"},
    {"iterator", "iterator: {}"},
    {"metric", "metrics: {{NAME: {}}}"},
    {"model", "model: {}"},
    {"optimizer", "optimizer: {}"},
    {"record filter", "{{class: TarShards, filter: {}, ...}}"},
    {"sampler", "samplers: {{train: {}}}"},
    {"schedule", "optimizer: {{lr: {}}}"},
    {"tokenizer", "tokenizer: {}"},
};

std::vector<Catalogue*>& catalogues() {
  static std::vector<Catalogue*> all;
  return all;
}

/// The names of a role, most likely first; for many names only some, and how to list all.
std::string known_names(const std::string& role, const std::vector<std::string>& sorted) {
  constexpr size_t kMost = 16;
  constexpr size_t kSome = 10;
  if (sorted.size() <= kMost) return fmt::format("{}", fmt::join(sorted, ", "));
  const auto end = sorted.begin() + kSome;
  const bool is_word = role.find(' ') == std::string::npos;
  return fmt::format("{} and {} more: stepop list {}", fmt::join(sorted.begin(), end, ", "),
                     sorted.size() - kSome, is_word ? role : "\"" + role + "\"");
}

/// What to write for a component of another role: `a metric is named by ...`; empty when there is
/// none of this name.
std::string other_role_hint(const std::string& role, const std::string& name, const Value* given) {
  const std::string text = given == nullptr ? name : flow_yaml(*given);
  std::string hint;
  for (const Catalogue* other : Catalogue::all()) {
    const bool is_it =
        other->role() != role && std::ranges::any_of(other->registrations(), [&](const auto& each) {
          return each.name == name && !each.about.is_alias;
        });
    if (!is_it) continue;
    const auto* place = std::ranges::find(kPlaces, other->role(), &PlaceOfRole::role);
    const std::string way = place == std::end(kPlaces)
                                ? "stepop list \"" + other->role() + "\""
                                : fmt::format(fmt::runtime(place->place), text);
    hint += fmt::format(
        "{}that is {} {}: {}", hint.empty() ? "" : "; ",
        std::string_view("aeiou").find(other->role()[0]) == std::string_view::npos ? "a" : "an",
        other->role(), way);
  }
  return hint;
}

}  // namespace

Catalogue::Catalogue(std::string role, std::string kind)
    : role_(std::move(role)), kind_(kind.empty() ? role_ : std::move(kind)) {
  catalogues().push_back(this);
}

Catalogue::~Catalogue() { std::erase(catalogues(), this); }

std::vector<const Catalogue*> Catalogue::all() {
  std::vector<const Catalogue*> sorted(catalogues().begin(), catalogues().end());
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
    return std::tie(a->kind_, a->role_) < std::tie(b->kind_, b->role_);
  });
  return sorted;
}

size_t Catalogue::insert(Registration registration) {
  auto place = std::lower_bound(
      registrations_.begin(), registrations_.end(), registration,
      [](const Registration& a, const Registration& b) { return a.name < b.name; });
  const bool is_there = place != registrations_.end() && place->name == registration.name;
  if (is_there && registration.about.is_alias) {
    ++place;  // the first one is found
  } else if (is_there && !place->about.is_alias) {
    duplicates_.push_back(fmt::format("the {} \"{}\" is registered twice: at {}:{} and at {}:{}",
                                      role_, registration.name, place->file, place->line,
                                      registration.file, registration.line));
  }
  const auto inserted = registrations_.insert(place, std::move(registration));
  return static_cast<size_t>(inserted - registrations_.begin());
}

void Catalogue::check() {
  std::string message;
  for (const Catalogue* catalogue : all()) {
    for (const auto& duplicate : catalogue->duplicates_) {
      message += (message.empty() ? "" : "\n") + duplicate + "; rename one of them";
    }
  }
  if (!message.empty()) throw Error(message);
}

size_t Catalogue::find(const std::string& name, const Config& config, std::string_view path) const {
  std::vector<std::string> names;
  std::vector<std::string> shown;
  for (size_t i = 0; i < registrations_.size(); ++i) {
    if (registrations_[i].name == name) return i;
    names.push_back(registrations_[i].name);
    if (!registrations_[i].about.is_alias) shown.push_back(names.back());
  }
  const std::string known = known_names(role_, sorted_by_distance(name, shown));
  const std::string in_map = join_path(path, "class");
  const std::string_view place = config.peek(in_map) != nullptr ? in_map : path;
  if (const std::string hint = foreign_class_hint(name); !hint.empty()) {
    throw config.error(place, fmt::format("unknown {} \"{}\": {}", role_, name, hint));
  }
  const auto near = nearest_names(name, names, 1);
  const bool is_other_case = !near.empty() && edit_distance(name, near.front()) == 0;
  const std::string hint = is_other_case ? "" : other_role_hint(role_, name, config.peek(path));
  if (!hint.empty()) {
    throw config.error(place, fmt::format("unknown {} \"{}\": {}", role_, name, hint));
  }
  if (near.empty()) {
    throw config.error(place, fmt::format("unknown {} \"{}\"; known are: {}{}", role_, name,
                                          known.empty() ? "none" : known, own_hint(role_)));
  }
  throw config.error(place, fmt::format("unknown {} \"{}\": did you mean \"{}\"? Known are: {}",
                                        role_, name, near.front(), known));
}

Component read_component(const Config& config, std::string_view path) {
  config.has(path);
  const Value* value = config.peek(path);
  const Config params = config.at(path);
  if (value != nullptr && value->is_text()) return {value->as_text(), params};
  if (value != nullptr && value->is_map()) return {params.get<std::string>("class"), params};
  if (value == nullptr) return {config.get<std::string>(path), params};  // throws: key missing
  throw config.error(path, fmt::format("expected a name, or a map with \"class\" and parameters, "
                                       "found {}",
                                       value->describe()));
}

}  // namespace stepop
