#include "runtime/core/system/cache_folder.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "runtime/core/base/error.h"

namespace stepop {

std::string cache_folder(std::string_view what) {
  const auto value = [](const char* name) {
    const char* text = std::getenv(name);
    return std::string(text != nullptr ? text : "");
  };
  if (const auto own = value("STEPOP_CACHE"); !own.empty()) {
    return std::filesystem::absolute(own).string();
  }
  if (const auto xdg = value("XDG_CACHE_HOME"); xdg.starts_with("/")) return xdg + "/stepop";
  if (const auto home = value("HOME"); !home.empty()) return home + "/.cache/stepop";
  throw Error(fmt::format("no folder for {}: neither STEPOP_CACHE nor HOME is set", what));
}

}  // namespace stepop
