#include "runtime/tools/code/compiler.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "runtime/core/programs/child_process.h"
#include "runtime/core/programs/find_program.h"
#include "runtime/tools/code/build_settings.h"
#include "runtime/tools/code/member_order.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostText = 1'000'000;

constexpr const char* kOptimization = "-O1";

/// Older ones lack parts of C++20.
constexpr int kOldestClang = 16;
constexpr int kNewestClang = 25;

/// The lines of functions, for messages with places in the user's code. A precompiled header can
/// only be used together with debug information.
constexpr const char* kLines = "-g1";
/// addr2line of Debian 12 does not find functions that Clang inlined by DWARF 5.
constexpr const char* kLinesFormat = "-gdwarf-4";

/// A path in the form that the user would type in the current folder.
std::string short_path(const std::string& path) {
  const std::string relative = fs::path(path).lexically_proximate(fs::current_path()).string();
  return relative.starts_with("..") ? path : relative;
}

/// The files of a make rule, `object: source header header`, with a backslash before a space and
/// before the end of a line.
std::vector<std::string> rule_files(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> files(1);
  for (char c = 0; file.get(c);) {
    if (c == '\\') {
      if (file.get(c) && c != '\n') files.back() += c;
      continue;
    }
    if (c == '$' && file.peek() == '$') file.get(c);
    if (c != ' ' && c != '\n') {
      files.back() += c;
    } else if (!files.back().empty()) {
      files.emplace_back();
    }
  }
  files.pop_back();
  files.erase(files.begin(), files.begin() + (files.empty() ? 0 : 1));  // the object
  return files;
}

/// The newest Clang on $PATH, or nothing.
std::string newest_clang() {
  for (int version = kNewestClang; version >= kOldestClang; --version) {
    std::string path = find_program(fmt::format("clang++-{}", version));
    if (!path.empty()) return path;
  }
  return {};
}

bool is_for_openmp(const std::string& flag) { return flag.starts_with("-fopenmp"); }

}  // namespace

std::string compiler_for(const std::vector<std::string>& flags) {
  const BuildSettings& settings = build_settings();
  if (settings.compiler_is_given || std::ranges::any_of(flags, is_for_openmp)) {
    return settings.compiler;
  }
  const std::string clang = newest_clang();
  return clang.empty() ? settings.compiler : clang;
}

Compiler::Compiler(std::string path, InterruptCheck interrupt)
    : path_(std::move(path)), interrupt_(std::move(interrupt)) {
  ChildResult result;
  try {
    result = run_child({path_, "--version"}, interrupt_);
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& error) {
    throw Error(fmt::format(
        "no compiler: {}. Install one (Debian: apt-get install g++), or name another one in "
        "STEPOP_CXX",
        error.what()));
  }
  if (result.exit_code != 0 || result.signal != 0) {
    throw Error(fmt::format("{} --version failed: {}{}; STEPOP_CXX names another compiler", path_,
                            result.out, result.err));
  }
  if (const std::string& own = build_settings().compiler; path_ != own) {
    note_ = fmt::format("(compiled with {}; STEPOP_CXX={} takes GCC)\n", path_, own);
  }
  identity_ = path_ + " " + result.out.substr(0, result.out.find('\n'));
  if (result.out.find("Free Software Foundation") != std::string::npos) kind_ = Kind::kGcc;
  if (result.out.find("clang version") != std::string::npos) kind_ = Kind::kClang;
}

const char* Compiler::precompiled_extension() const {
  switch (kind_) {
    case Kind::kGcc:
      return ".gch";
    case Kind::kClang:
      return ".pch";
    case Kind::kOther:
      break;
  }
  return "";
}

std::vector<std::string> Compiler::flags_for(const std::string& header) const {
  if (kind_ == Kind::kGcc) return {"-include", header};
  // Clang refuses a header that was precompiled with another level of optimization, for its macro.
  return {"-Xclang", "-fno-validate-pch", "-include-pch", header + precompiled_extension()};
}

std::vector<std::string> Compiler::build_flags() const {
  const BuildSettings& settings = build_settings();
  std::vector<std::string> flags = settings.flags;
  if (is_clang()) {
    flags.insert(flags.end(), settings.clang_flags.begin(), settings.clang_flags.end());
  }
  return flags;
}

bool Compiler::fits_header(const std::vector<std::string>& flags) const {
  return !is_clang() || std::ranges::none_of(flags, [](const std::string& flag) {
    return flag.starts_with("-std") || flag.starts_with("-m") || flag.starts_with("-f");
  });
}

void Compiler::run(std::vector<std::string> words, std::string& text) const {
  words.insert(words.begin(), path_);
  words.push_back(::isatty(STDERR_FILENO) != 0 ? "-fdiagnostics-color=always"
                                               : "-fdiagnostics-color=never");
  const ChildResult result = run_child(std::move(words), interrupt_, kMostText);
  text += result.err;
  if (result.exit_code == 0 && result.signal == 0) return;
  if (result.signal != 0) {
    throw CompileError(fmt::format("{}the compiler was ended by signal {}: is there enough memory?",
                                   result.err, result.signal));
  }
  throw CompileError(result.err + member_order(result.err) + note_);
}

std::vector<std::string> Compiler::compile(const std::string& source, const std::string& object,
                                           const std::vector<std::string>& flags,
                                           Optimization optimization, std::string& text) const {
  const std::string rule = object + ".d";
  std::vector<std::string> words = build_flags();
  const bool is_quick = optimization == Optimization::kQuick && is_clang();
  words.insert(words.end(),
               {is_quick ? "-O0" : kOptimization, kLines, kLinesFormat, "-fPIC", "-Wall", "-Wextra",
                is_clang() ? "-ferror-limit=1" : "-fmax-errors=1", "-MMD", "-MF", rule});
  if (is_clang()) {  // as GCC
    words.insert(words.end(), {"-Werror=reorder-init-list", "-Wno-missing-field-initializers"});
  }
  words.insert(words.end(), flags.begin(), flags.end());
  words.insert(words.end(), {"-c", short_path(source), "-o", object});
  run(std::move(words), text);
  std::vector<std::string> headers;
  for (const auto& file : rule_files(rule)) {
    const std::string path = fs::absolute(file).lexically_normal().string();
    if (path != source && path.find("/precompiled.h") == std::string::npos) headers.push_back(path);
  }
  fs::remove(rule);
  return headers;
}

void Compiler::link(const std::vector<std::string>& objects, const std::string& library,
                    const std::vector<std::string>& flags) const {
  std::vector<std::string> words = {"-shared", "-o", library};
  words.insert(words.end(), objects.begin(), objects.end());
  words.insert(words.end(), flags.begin(), flags.end());
  std::string text;
  run(std::move(words), text);
}

void Compiler::precompile(const std::string& header, const std::string& precompiled) const {
  std::vector<std::string> words = build_flags();
  words.insert(words.end(), {kOptimization, kLines, kLinesFormat, "-fPIC", "-x", "c++-header",
                             header, "-o", precompiled});
  if (is_clang()) words.emplace_back("-fpch-instantiate-templates");
  std::string text;
  run(std::move(words), text);
}

}  // namespace stepop
