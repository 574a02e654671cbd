#include "runtime/core/components/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "runtime/core/base/nearest.h"
#include "runtime/core/components/foreign_names.h"
#include "runtime/core/value/yaml_writer.h"

namespace stepop {
namespace {

/// The advice for a name that is not near any known name.
std::string own_hint(const std::string& kind) {
  std::string macro = "STEPOP_REGISTER_" + kind;
  std::transform(macro.begin(), macro.end(), macro.begin(),
                 [](unsigned char c) { return c == ' ' ? '_' : std::toupper(c); });
  return fmt::format(
      "; one of your own is registered by {} in a file that `code: [file.cpp]` names", macro);
}

/// How a config names a component of each kind; `{}` is the component.
struct PlaceOfKind {
  std::string_view kind;
  std::string_view place;
};
constexpr PlaceOfKind kPlaces[] = {
    {"augmentation", "{{class: Augment, dataset: ..., augmentations: [{}]}}"},
    {"callback", "eval_hook: {{eval_callbacks: {{NAME: {}}}}}"},
    {"dataset", "datasets: {{train: {}}}"},
    {"evaluator", "eval: {{evaluators: {{NAME: {{type: ...}}}}}}"},
    {"functor", "eval_functor: {}"},
    {"hook", "hooks: {{NAME: {}}}"},
    {"integration", "integrations: {{{}: {{active: true}}}}"},
    {"iterator", "iterator: {}"},
    {"metric", "metrics: {{NAME: {}}}"},
    {"model", "model: {}"},
    {"optimizer", "optimizer: {}"},
    {"sampler", "samplers: {{train: {}}}"},
    {"schedule", "optimizer: {{lr: {}}}"},
};

std::vector<Catalogue*>& catalogues() {
  static std::vector<Catalogue*> all;
  return all;
}

/// The names of a kind, most likely first; for many names only some, and how to list all.
std::string known_names(const std::string& kind, const std::vector<std::string>& sorted) {
  constexpr size_t kMost = 16;
  constexpr size_t kSome = 10;
  if (sorted.size() <= kMost) return fmt::format("{}", fmt::join(sorted, ", "));
  const auto end = sorted.begin() + kSome;
  const bool is_word = kind.find(' ') == std::string::npos;
  return fmt::format("{} and {} more: stepop list {}", fmt::join(sorted.begin(), end, ", "),
                     sorted.size() - kSome, is_word ? kind : "\"" + kind + "\"");
}

/// What to write for a component of another kind: `a metric is named by ...`; empty when there is
/// none of this name.
std::string other_kind_hint(const std::string& kind, const std::string& name, const Value* given) {
  const std::string text = given == nullptr ? name : flow_yaml(*given);
  std::string hint;
  for (const Catalogue* other : Catalogue::all()) {
    const bool is_it = other->kind() != kind &&
                       std::ranges::any_of(other->registrations(),
                                           [&](const auto& each) { return each.name == name; });
    if (!is_it) continue;
    const auto* place = std::ranges::find(kPlaces, other->kind(), &PlaceOfKind::kind);
    const bool is_wrapped = kind == "callback" && other->kind() == "metric";
    const std::string way =
        is_wrapped                   ? fmt::format("{{class: Metric, metric: {}}}",
                                 text.starts_with('{') ? text : "{class: " + text + "}")
        : place == std::end(kPlaces) ? "stepop list \"" + other->kind() + "\""
                                     : fmt::format(fmt::runtime(place->place), text);
    hint += fmt::format(
        "{}that is {} {}: {}", hint.empty() ? "" : "; ",
        std::string_view("aeiou").find(other->kind()[0]) == std::string_view::npos ? "a" : "an",
        other->kind(), way);
  }
  return hint;
}

}  // namespace

Catalogue::Catalogue(std::string kind) : kind_(std::move(kind)) { catalogues().push_back(this); }

Catalogue::~Catalogue() { std::erase(catalogues(), this); }

std::vector<const Catalogue*> Catalogue::all() {
  std::vector<const Catalogue*> sorted(catalogues().begin(), catalogues().end());
  std::sort(sorted.begin(), sorted.end(),
            [](const auto* a, const auto* b) { return a->kind() < b->kind(); });
  return sorted;
}

size_t Catalogue::insert(Registration registration) {
  const auto place = std::lower_bound(
      registrations_.begin(), registrations_.end(), registration,
      [](const Registration& a, const Registration& b) { return a.name < b.name; });
  if (place != registrations_.end() && place->name == registration.name) {
    duplicates_.push_back(fmt::format("the {} \"{}\" is registered twice: at {}:{} and at {}:{}",
                                      kind_, registration.name, place->file, place->line,
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
  for (size_t i = 0; i < registrations_.size(); ++i) {
    if (registrations_[i].name == name) return i;
    names.push_back(registrations_[i].name);
  }
  const std::string known = known_names(kind_, sorted_by_distance(name, names));
  const std::string in_map = join_path(path, "class");
  const std::string_view place = config.peek(in_map) != nullptr ? in_map : path;
  if (const std::string hint = foreign_class_hint(name); !hint.empty()) {
    throw config.error(place, fmt::format("unknown {} \"{}\": {}", kind_, name, hint));
  }
  const auto near = nearest_names(name, names, 1);
  const bool is_other_case = !near.empty() && edit_distance(name, near.front()) == 0;
  const std::string hint = is_other_case ? "" : other_kind_hint(kind_, name, config.peek(path));
  if (!hint.empty()) {
    throw config.error(place, fmt::format("unknown {} \"{}\": {}", kind_, name, hint));
  }
  if (near.empty()) {
    throw config.error(place, fmt::format("unknown {} \"{}\"; known are: {}{}", kind_, name,
                                          known.empty() ? "none" : known, own_hint(kind_)));
  }
  throw config.error(place, fmt::format("unknown {} \"{}\": did you mean \"{}\"? Known are: {}",
                                        kind_, name, near.front(), known));
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
