#include "runtime/tools/start/shared_start.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/core/base/json_text.h"
#include "runtime/core/system/checksum.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/core/value/yaml_writer.h"

namespace stepop {
namespace {

/// The config from this machine's -b files; empty if the files are not used, or are missing.
std::string own_config(const Arguments& arguments, RunSource& source) {
  if (arguments.project) return {};
  try {
    // A pipe can be read only once, and rank 0 does.
    std::error_code failed;
    const auto is_file = [&](const std::string& path) {
      return std::filesystem::is_regular_file(path, failed);
    };
    if (!source.files && !std::ranges::all_of(arguments.base, is_file)) return {};
    return to_yaml(source.resolve(arguments.overrides).root);
  } catch (const std::exception&) {
    return {};
  }
}

std::string code_text(const std::vector<std::string>& files) {
  std::string text;
  for (const auto& file : files) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ",
                        std::filesystem::path(file).filename().string(), file_checksum(file));
  }
  return text;
}

}  // namespace

SharedStart share_start(World& world, const SharedStart& of_root) {
  const std::string text = world.from_root([&] {
    return write_json(nlohmann::json{{"time", of_root.time}, {"git", of_root.git}});
  });
  if (world.is_root()) return of_root;
  const auto json = read_json(text);
  return {json.at("time").get<std::string>(), json.at("git").get<std::string>()};
}

void share_config(World& world, const Arguments& arguments, RunSource& source, RunConfig& config) {
  if (world.is_alone()) return;
  const std::string text = world.from_root([&] {
    const bool takes_copy = source.project && !arguments.current_code;
    return write_json(nlohmann::json{{"config", to_yaml(*config.config.root().peek())},
                                     {"files", own_config(arguments, source)},
                                     {"code", takes_copy ? source.project->root() : ""}});
  });
  if (!world.is_root()) {
    const auto json = read_json(text);
    RunSource here;
    here.base = arguments.base;
    const std::string own = own_config(arguments, here);
    const auto files = json.at("files").get<std::string>();
    if (!own.empty() && own != files) {
      throw UsageError("the files of -b are not those of rank 0: give all machines the same");
    }
    config.config = Config(parse_yaml(json.at("config").get<std::string>(), {"rank 0", 0}));
    config.code =
        load_code(config.config, json.at("code").get<std::string>(), optimization_of(arguments));
  }
  world.check_same("the code that the config names", code_text(config.code.files));
}

}  // namespace stepop
