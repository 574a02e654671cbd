#include "runtime/cli/run_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "runtime/config/resolve.h"
#include "runtime/error.h"
#include "runtime/registry.h"

namespace stepop {
namespace fs = std::filesystem;

RunSource find_source(const Arguments& arguments) {
  RunSource source{arguments.base, std::nullopt};
  if (!arguments.project) return source;
  fs::path path(*arguments.project);
  const bool is_config = path.extension() == ".yaml" && fs::is_regular_file(path);
  if (is_config) source.base.insert(source.base.begin(), path.string());
  source.project =
      RunDirectory::open(is_config ? path.parent_path().parent_path().string() : path.string());
  if (source.base.empty()) source.base.push_back(source.project->last_config());
  return source;
}

Config read_run_config(const Arguments& arguments, const RunSource& source) {
  Value root = resolve_config(source.base, arguments.overrides);
  // num_steps wins over num_epochs, but not an old one over what is asked for now.
  const auto is_given = [&](const char* key) {
    return std::any_of(arguments.overrides.begin(), arguments.overrides.end(),
                       [&](const Override& given) { return given.path == key; });
  };
  if (is_given("num_epochs") && !is_given("num_steps")) root.as_map().erase("num_steps");
  const Config config(std::move(root));
  make_paths_absolute(config);
  return config;
}

std::string run_name(const Arguments& arguments, const std::optional<RunDirectory>& project,
                     const Config& config) {
  std::string name = project ? project->run_name() : "run";
  if (arguments.name) {
    name = *arguments.name;
  } else if (config.has("experiment_name")) {
    name = config.get<std::string>("experiment_name");
  }
  if (name.empty() || name.find_first_of("/\\\n") != std::string::npos || name[0] == '.') {
    throw UsageError(fmt::format("-n: \"{}\" cannot be a part of a folder's name", name));
  }
  return name;
}

}  // namespace stepop
