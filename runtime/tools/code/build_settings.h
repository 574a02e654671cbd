#pragma once

#include <string>
#include <vector>

namespace stepop {

/// How libstepop.so was built, so that user code can be built to match: the file libstepop.json
/// next to it, which the build writes and an installation includes.
struct BuildSettings {
  std::string version;                   ///< The version of stepop.
  std::string compiler;                  ///< $STEPOP_CXX, or else the path of GCC.
  bool compiler_is_given = false;        ///< By $STEPOP_CXX.
  std::vector<std::string> flags;        ///< Standard, definitions and include folders.
  std::vector<std::string> clang_flags;  ///< More of them for Clang, as this LibTorch needs them.
  std::vector<std::string> includes;     ///< The folders of stepop's own headers.
  std::string headers;    ///< The folder of the precompiled header of this build or installation.
  std::string templates;  ///< The folder of the templates for `stepop new`.
  std::string library;    ///< libstepop.so itself.
  std::string text;       ///< The whole file, to distinguish builds.
};

/// Reads the settings once. Throws Error when the file is missing or damaged.
const BuildSettings& build_settings();

/// `flags` without `-isystem /usr/include`, however it is written: a compiler searches that folder
/// by itself, and named again it comes before the compiler's own headers, which then find no C.
std::vector<std::string> without_usual_folder(const std::vector<std::string>& flags);

}  // namespace stepop
