// `stepop list`: the registered components and their parameters.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/json_text.h"
#include "runtime/core/base/nearest.h"
#include "runtime/core/components/registry.h"
#include "runtime/tools/cli/command.h"
#include "runtime/tools/start/run_source.h"
#include "runtime/train/keys/own_keys.h"

namespace stepop {
namespace {

/// Ignores case.
bool has_word(const std::string& text, const std::string& word) {
  const auto is_same = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  return std::search(text.begin(), text.end(), word.begin(), word.end(), is_same) != text.end();
}

std::string plural(std::string_view word) {
  return fmt::format("{}{}", word, word.ends_with('s') ? "es" : "s");
}

/// The path of the map with a parameter, `augmentations/both`; empty for the component's own map.
std::string_view map_of(const Parameter& parameter) {
  const size_t slash = parameter.name.rfind('/');
  return std::string_view(parameter.name).substr(0, slash == std::string::npos ? 0 : slash);
}

constexpr size_t kWidestValue = 24;  ///< The column of defaults is no wider for a longer one.

/// One line for each parameter; parameters of a nested map are grouped below its name.
std::string parameter_lines(const std::vector<Parameter>& parameters) {
  std::string text;
  std::string_view map;
  size_t width = 14;
  size_t values = 14;
  for (const auto& parameter : parameters) {
    if (map_of(parameter).empty()) width = std::max(width, parameter.name.size());
    if (const size_t size = parameter.default_value.size(); size <= kWidestValue) {
      values = std::max(values, size);
    }
  }
  for (const auto& parameter : parameters) {
    const std::string_view parent = map_of(parameter);
    const size_t start = parent.empty() ? 0 : parent.size() + 1;
    if (parent != map && !parent.empty()) {
      text += fmt::format("      {}:\n", parent);
      for (const auto& other : parameters) {
        if (map_of(other) == parent) width = std::max(width, other.name.size() - start);
      }
    }
    map = parent;
    text += fmt::format("      {}{:<{}} {:<{}} {}\n", parent.empty() ? "" : "  ",
                        parameter.name.substr(start), width,
                        parameter.default_value.empty() ? "(required)" : parameter.default_value,
                        values, parameter.about);
  }
  return text;
}

struct ListFlags {
  bool json = false;

  void add_to(Flags& flags) {
    flags.add("json", json,
              "for programs: all components, the runtime's own keys and the commands, as JSON");
  }
};

/// What configs and command lines can name. A parameter without a default is required; the default
/// of a key may also be `-`, for none, or `required`.
nlohmann::ordered_json all_names() {
  nlohmann::ordered_json all = {{"components", nlohmann::json::object()},
                                {"keys", nlohmann::json::array()},
                                {"commands", nlohmann::json::array()}};
  for (const Catalogue* catalogue : Catalogue::all()) {
    auto& kind = all["components"][catalogue->kind()];
    if (kind.is_null()) kind = nlohmann::json::array();
    for (const auto& component : catalogue->registrations()) {
      auto parameters = nlohmann::ordered_json::array();
      for (const auto& parameter : component.about.parameters) {
        nlohmann::ordered_json one = {{"name", parameter.name}, {"about", parameter.about}};
        if (!parameter.default_value.empty()) one["default"] = parameter.default_value;
        parameters.push_back(std::move(one));
      }
      kind.push_back({{"name", component.name},
                      {"role", catalogue->role()},
                      {"about", component.about.summary},
                      {"is_alias", component.about.is_alias},
                      {"parameters", std::move(parameters)}});
    }
  }
  for (const OwnKey& key : own_keys()) {
    all["keys"].push_back({{"path", key.path},
                           {"type", key.type.text()},
                           {"default", key.default_value},
                           {"about", key.about}});
  }
  for (const CommandInfo* command : commands())
    all["commands"].push_back({{"name", command->name}, {"about", command->about}});
  return all;
}

/// A registered component, with what list prints of it.
struct Listed {
  const Catalogue* catalogue;
  const Registration* registration;

  /// Whether its name, kind or role has all the words; an alias has to be named by one of them.
  bool has_all(const std::vector<std::string>& words) const {
    const bool is_named = std::ranges::find(words, registration->name) != words.end();
    if (registration->about.is_alias && !is_named) return false;
    return std::ranges::all_of(words, [&](const std::string& word) {
      return has_word(registration->name, word) || has_word(plural(catalogue->kind()), word) ||
             has_word(plural(catalogue->role()), word);
    });
  }

  std::string about() const {
    const bool is_told = catalogue->role() != catalogue->kind();
    return fmt::format("{}{}{}", is_told ? catalogue->role() : "", is_told ? ": " : "",
                       registration->about.summary);
  }
};

/// The aliases of a kind that is listed whole, such as PyTorch's names of schedules, and the
/// metrics among the callbacks.
std::string alias_line(const std::vector<Listed>& components,
                       const std::vector<std::string>& words) {
  const bool is_whole = std::ranges::all_of(words, [&](const std::string& word) {
    return has_word(plural(components[0].catalogue->kind()), word);
  });
  std::string names;
  for (const Listed& each : components) {
    if (each.registration->about.is_alias)
      names += (names.empty() ? "" : ", ") + each.registration->name;
  }
  return names.empty() || !is_whole ? ""
                                    : fmt::format("  also read, shown by their names: {}\n", names);
}

/// All components by their kind, sorted by name.
OrderedMap<std::vector<Listed>> components_by_kind() {
  OrderedMap<std::vector<Listed>> kinds;
  for (const Catalogue* catalogue : Catalogue::all()) {
    auto& all = kinds[catalogue->kind()];
    for (const auto& registration : catalogue->registrations()) {
      all.push_back({catalogue, &registration});
    }
  }
  for (auto& [kind, all] : kinds) {
    std::ranges::stable_sort(all, {}, [](const Listed& each) { return each.registration->name; });
  }
  return kinds;
}

/// The kind or component whose name is nearest; empty for none.
std::string nearest_listed(const std::string& word) {
  std::vector<std::string> names;
  for (const Catalogue* catalogue : Catalogue::all()) {
    names.push_back(catalogue->kind());
    names.push_back(catalogue->role());
    for (const auto& registration : catalogue->registrations()) names.push_back(registration.name);
  }
  const auto near = nearest_names(word, names, 1);
  return near.empty() ? "" : near.front();
}

/// Whether the runtime has a key of that name, or keys below it.
bool is_own_key(const std::string& word) {
  return std::ranges::any_of(own_keys(), [&](const OwnKey& key) {
    const std::string_view path = key.path;
    return path == word || (path.starts_with(word) && path.substr(word.size()).starts_with('/'));
  });
}

int list_command(const Arguments& arguments, const ListFlags& own) {
  if (!arguments.base.empty()) {
    load_code(Config(resolve_config(arguments.base, arguments.overrides)), "",
              Optimization::kQuick);
  }
  if (own.json) {
    if (!arguments.operands.empty())
      throw UsageError("stepop list --json: it has all names; leave out the word");
    fmt::print("{}\n", write_json(all_names(), 1));
    return 0;
  }
  const std::vector<std::string>& words = arguments.operands;
  bool is_found = false;
  for (const auto& [kind, components] : components_by_kind()) {
    std::string text;
    size_t width = 14;
    for (const Listed& each : components) {
      if (each.has_all(words)) width = std::max(width, each.registration->name.size());
    }
    for (const Listed& each : components) {
      if (!each.has_all(words)) continue;
      text += fmt::format("  {:<{}} {}\n", each.registration->name, width, each.about());
      text += parameter_lines(each.registration->about.parameters);
    }
    is_found = is_found || !text.empty();
    if (!text.empty()) fmt::print("{}\n{}{}\n", plural(kind), text, alias_line(components, words));
  }
  if (!is_found && !words.empty()) {
    if (is_own_key(words.back())) {
      throw UsageError(
          fmt::format("stepop list {}: no component or kind of component has that in its name, but "
                      "{} is a key of a config: `stepop config -b FILE --keys` has it",
                      fmt::join(words, " "), words.back()));
    }
    const std::string near = nearest_listed(words.back());
    throw UsageError(
        fmt::format("stepop list {}: no component or kind of component has that in its name; {}",
                    fmt::join(words, " "),
                    near.empty() ? "`stepop list` shows all" : "did you mean " + near + "?"));
  }
  return 0;
}

STEPOP_REGISTER_COMMAND(list_command, ListFlags,
                        {.name = "list",
                         .group = CommandGroup::kBegin,
                         .operands = "[WORD [WORD] | --json] [-b base.yaml]",
                         .fewest = 0,
                         .most = 2,
                         .about = "components and their parameters, also of the code in -b; each "
                                  "WORD is a part of a name or kind",
                         .takes = "base",
                         .example = "stepop list dataset\nstepop list Adam"});

}  // namespace

}  // namespace stepop
