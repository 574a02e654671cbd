#include "runtime/tools/code/load_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "runtime/core/base/abi.h"
#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"
#include "runtime/core/components/registry.h"
#include "runtime/core/system/read_file.h"
#include "runtime/tools/code/code_places.h"
#include "runtime/tools/code/crash_message.h"

namespace stepop {

void check_built_against(const std::string& path, const std::string& name) {
  const std::string bytes = try_read_file(path).value_or("");
  if (!bytes.starts_with("\x7f"
                         "ELF")) {
    throw Error(fmt::format("{}: not a shared library", name));
  }
  const size_t mark = bytes.find(STEPOP_ABI_MARK);
  if (mark == std::string::npos) {
    throw Error(
        fmt::format("{}: a library that does not include <stepop/stepop.h> has no "
                    "components for stepop",
                    name));
  }
  const std::string found = bytes.c_str() + mark + std::strlen(STEPOP_ABI_MARK);
  if (found != STEPOP_BUILT_AGAINST) {
    throw Error(fmt::format("{}: built against {}, and this is {}: build it again", name, found,
                            STEPOP_BUILT_AGAINST));
  }
}

namespace {

constexpr const char* kWhere = "while it was loaded, in a constructor of a global or static object";

/// Demangles `undefined symbol: _ZN...`.
std::string readable(std::string text) {
  const size_t at = text.find("_Z");
  if (at == std::string::npos) return text;
  const size_t end = text.find_first_of(" )\n", at);
  const std::string symbol = text.substr(at, end - at);
  return text.replace(at, symbol.size(), demangled(symbol));
}

}  // namespace

void load_library(const std::string& path, const std::string& name,
                  const std::vector<std::string>& files) {
  // glibc declares that dlopen does not throw; the constructors that dlopen runs may throw.
  void* (*const volatile open)(const char*, int) = ::dlopen;
  void* library = nullptr;
  try {
    const CrashMessage message(fmt::format("{} crashed {}", name, kWhere));
    library = open(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  } catch (const std::exception& error) {
    throw Error(fmt::format("{} threw {}: {}", name, kWhere, error_text(error)));
  } catch (...) {
    throw Error(fmt::format("{} threw something other than a std::exception {}", name, kWhere));
  }
  if (library == nullptr) {
    std::string reason = ::dlerror();
    if (reason.starts_with(path + ": ")) reason.erase(0, path.size() + 2);
    throw Error(fmt::format("{}: cannot be loaded: {}", name, readable(reason)));
  }
  add_user_library(path, files);
  Catalogue::check();
}

}  // namespace stepop
