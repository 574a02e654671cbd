// `stepop list`: the registered components and their parameters.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/config/registry.h"
#include "runtime/tools/cli/command.h"
#include "runtime/tools/cli/run_source.h"

namespace stepop {
namespace {

/// Ignores case.
bool has_word(const std::string& text, const std::string& word) {
  const auto is_same = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  return std::search(text.begin(), text.end(), word.begin(), word.end(), is_same) != text.end();
}

/// The path of the map with a parameter, `augmentations/both`; empty for the component's own map.
std::string_view map_of(const Parameter& parameter) {
  const size_t slash = parameter.name.rfind('/');
  return std::string_view(parameter.name).substr(0, slash == std::string::npos ? 0 : slash);
}

/// One line for each parameter; parameters of a nested map are grouped below its name.
std::string parameter_lines(const std::vector<Parameter>& parameters) {
  std::string text;
  std::string_view map;
  size_t width = 14;
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
    text += fmt::format("      {}{:<{}} {:<14} {}\n", parent.empty() ? "" : "  ",
                        parameter.name.substr(start), width,
                        parameter.default_value.empty() ? "(required)" : parameter.default_value,
                        parameter.about);
  }
  return text;
}

int list_command(const Arguments& arguments, const NoFlags& /*own*/) {
  if (!arguments.base.empty()) {
    load_code(Config(resolve_config(arguments.base, arguments.overrides)), "",
              Optimization::kQuick);
  }
  const std::string word = arguments.operands.empty() ? "" : arguments.operands.front();
  bool is_found = false;
  for (const Catalogue* catalogue : Catalogue::all()) {
    std::string text;
    size_t width = 14;
    for (const auto& registration : catalogue->registrations()) {
      width = std::max(width, registration.name.size());
    }
    for (const auto& registration : catalogue->registrations()) {
      if (!has_word(registration.name, word) &&
          !has_word(fmt::format("{}s", catalogue->kind()), word))
        continue;
      text += fmt::format("  {:<{}} {}\n", registration.name, width, registration.about.summary);
      text += parameter_lines(registration.about.parameters);
    }
    is_found = is_found || !text.empty();
    if (word.empty() || !text.empty()) fmt::print("{}s\n{}\n", catalogue->kind(), text);
  }
  if (!is_found && !word.empty()) {
    throw UsageError(
        fmt::format("stepop list {}: no component or kind of component has that in its "
                    "name; `stepop list` shows all",
                    word));
  }
  return 0;
}

STEPOP_REGISTER_COMMAND(list_command, NoFlags,
                        {.name = "list",
                         .group = CommandGroup::kBegin,
                         .operands = "[WORD] [-b base.yaml]",
                         .fewest = 0,
                         .most = 1,
                         .about = "components and their parameters, also of the code in -b; WORD "
                                  "is a part of a name or kind",
                         .takes = "base",
                         .example = "stepop list dataset\nstepop list Adam"});

}  // namespace

}  // namespace stepop
