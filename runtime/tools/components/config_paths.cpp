#include "runtime/tools/components/config_paths.h"

#include <fmt/format.h>

#include <string>

#include "runtime/core/config/resolve.h"
#include "runtime/core/value/value.h"

namespace stepop {
namespace {

void print_paths(const Value& value, const std::string& path) {
  if (!path.empty()) fmt::print("{}\n", path);
  if (!value.is_map()) return;
  for (const auto& [key, item] : value.as_map()) print_paths(item, join_path(path, key));
}

}  // namespace

void ConfigFlags::add_to(Flags& flags) {
  flags.add("keys", keys,
            "each key of the config, of its components and of the runtime, with type, value or "
            "(default), and meaning");
  flags.add("schema", schema,
            "a JSON Schema of a config, for editors; without -b any class counts as known");
  flags.add("paths", paths, "only the paths of its keys; its code is neither compiled nor loaded");
}

int print_config_paths(const Arguments& arguments) {
  print_paths(resolve_config(arguments.base, arguments.overrides), "");
  return 0;
}

}  // namespace stepop
