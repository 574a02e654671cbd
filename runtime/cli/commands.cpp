#include "runtime/cli/commands.h"

#include <fmt/format.h>

#include "runtime/config/yaml_writer.h"
#include "runtime/registry.h"

namespace stepop {

void config_command(const Arguments& arguments) {
  if (arguments.base.empty()) {
    throw UsageError("stepop config: no config given: -b base.yaml");
  }
  const Config config(resolve_config(arguments.base, arguments.overrides));
  make_paths_absolute(config);
  fmt::print("{}", to_yaml(escape_references(*config.peek())));
}

void list_command() {
  for (const Catalogue* catalogue : Catalogue::all()) {
    fmt::print("{}s\n", catalogue->kind());
    for (const auto& registration : catalogue->registrations()) {
      fmt::print("  {:<14} {}\n", registration.name, registration.about.summary);
      for (const auto& parameter : registration.about.parameters) {
        const std::string value =
            parameter.default_value.empty() ? "(required)" : parameter.default_value;
        fmt::print("      {:<14} {:<14} {}\n", parameter.name, value, parameter.about);
      }
    }
    fmt::print("\n");
  }
}

}  // namespace stepop
