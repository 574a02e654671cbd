#include "runtime/code/load_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <exception>

#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/code/abi.h"
#include "runtime/config/registry.h"
#include "runtime/system/read_file.h"

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

/// While it lives, a crash says what was being loaded.
class CrashMessage {
 public:
  explicit CrashMessage(const std::string& name) {
    text_ = fmt::format("stepop: {} crashed {}\n", name, kWhere);
    struct sigaction action {};
    action.sa_handler = on_crash;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &action, &before_[i]);
  }
  ~CrashMessage() {
    for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
  }
  CrashMessage(const CrashMessage&) = delete;
  CrashMessage& operator=(const CrashMessage&) = delete;

 private:
  static constexpr std::array kSignals = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

  static void on_crash(int signal) {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text_.data(), text_.size());
    ::raise(signal);  // the default now
  }

  static inline std::string text_;
  std::array<struct sigaction, kSignals.size()> before_{};
};

/// `undefined symbol: _ZN...` as people write it.
std::string readable(std::string text) {
  const size_t at = text.find("_Z");
  if (at == std::string::npos) return text;
  const size_t end = text.find_first_of(" )\n", at);
  const std::string symbol = text.substr(at, end - at);
  return text.replace(at, symbol.size(), demangled(symbol));
}

}  // namespace

void load_library(const std::string& path, const std::string& name) {
  // glibc declares that dlopen does not throw; the constructors that it calls may.
  void* (*const volatile open)(const char*, int) = ::dlopen;
  void* library = nullptr;
  try {
    const CrashMessage message(name);
    library = open(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  } catch (const std::exception& error) {
    throw Error(fmt::format("{} threw {}: {}", name, kWhere, error_text(error)));
  }
  if (library == nullptr) {
    std::string reason = ::dlerror();
    if (reason.starts_with(path + ": ")) reason.erase(0, path.size() + 2);
    throw Error(fmt::format("{}: cannot be loaded: {}", name, readable(reason)));
  }
  Catalogue::check();
}

}  // namespace stepop
