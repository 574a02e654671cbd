#pragma once

#include <string>
#include <vector>

namespace stepop {

/// How libstepop.so was built, and so how code that joins it must be: the file libstepop.json
/// beside it, which the build writes and an installation moves along.
struct BuildSettings {
  std::string version;                ///< Of stepop.
  std::string compiler;               ///< $STEPOP_CXX, else the path of the one that built stepop.
  std::string compiler_version;       ///< Of the one that built stepop: "GNU 12.2.0".
  std::vector<std::string> flags;     ///< Standard, definitions and include folders.
  std::vector<std::string> includes;  ///< The folders of stepop's own headers.
  std::string headers;    ///< Where the precompiled header of this build or installation lies.
  std::string templates;  ///< The folder of what `stepop new` begins with.
  std::string library;    ///< libstepop.so itself.
  std::string text;       ///< The whole file, to tell builds apart.
};

/// Reads them once. Throws Error when the file is not there or is damaged.
const BuildSettings& build_settings();

}  // namespace stepop
