#include "runtime/tools/code/build_settings.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "runtime/core/base/error.h"
#include "runtime/core/base/json_text.h"
#include "runtime/core/system/read_file.h"
#include "runtime/core/system/stepop_library.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

std::string replace_all(std::string text, std::string_view what, const std::string& by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

BuildSettings read() {
  const fs::path library = stepop_library();
  const std::string path = fs::path(library).replace_filename("libstepop.json").string();
  const auto text = try_read_file(path);
  if (!text) {
    throw Error(
        fmt::format("cannot read {}, which says how your own code is compiled; build "
                    "or install stepop again",
                    path));
  }
  // `{here}` lets an installation be moved.
  const std::string here = library.parent_path().string();
  try {
    const auto json = read_json(replace_all(*text, "{here}", here));
    const char* compiler = std::getenv("STEPOP_CXX");
    const bool is_given = compiler != nullptr && *compiler != 0;
    return {.version = json.at("version"),
            .compiler = is_given ? compiler : std::string(json.at("compiler")),
            .compiler_is_given = is_given,
            .flags = without_usual_folder(json.at("flags")),
            .clang_flags = json.at("clang_flags"),
            .includes = json.at("includes"),
            .headers = json.at("headers"),
            .templates = json.at("templates"),
            .library = library.string(),
            .text = *text};
  } catch (const nlohmann::json::exception& error) {
    throw Error(fmt::format("{}: {}; build or install stepop again", path, error.what()));
  }
}

}  // namespace

std::vector<std::string> without_usual_folder(const std::vector<std::string>& flags) {
  std::vector<std::string> left;
  for (size_t i = 0; i < flags.size(); ++i) {
    std::error_code is_missing;
    const bool is_usual = flags[i] == "-isystem" && i + 1 < flags.size() &&
                          fs::equivalent(flags[i + 1], "/usr/include", is_missing);
    if (is_usual) {
      ++i;  // its folder
    } else {
      left.push_back(flags[i]);
    }
  }
  return left;
}

const BuildSettings& build_settings() {
  static const BuildSettings settings = read();
  return settings;
}

}  // namespace stepop
