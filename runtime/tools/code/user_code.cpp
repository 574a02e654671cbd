#include "runtime/tools/code/user_code.h"

#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "runtime/core/system/read_file.h"
#include "runtime/tools/code/capture_check.h"
#include "runtime/tools/code/code_cache.h"
#include "runtime/tools/code/load_library.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

/// `code: denoiser.cpp`, `code: [denoiser.cpp, libmine.so]`: absolute paths of existing files.
std::vector<std::string> read_code(const Config& config, const CodeCopy* copy) {
  if (!config.has("code")) return {};
  const Value* value = config.peek("code");
  std::vector<std::string> places;
  if (value->is_list()) {
    for (size_t i = 0; i < value->as_list().size(); ++i)
      places.push_back(fmt::format("code/{}", i));
  } else {
    places.push_back("code");
  }
  std::vector<std::string> paths;
  for (const auto& place : places) {
    std::string path = config.get_path(place);
    if (copy != nullptr) path = copy->find(path);
    if (!fs::exists(path)) throw config.error(place, fmt::format("{}: no such file", path));
    paths.push_back(fs::path(path).lexically_normal().string());
  }
  return paths;
}

/// Whether the file is a library: `libmine.so`, `libmine.so.2`.
bool is_library(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  return name.ends_with(".so") || name.find(".so.") != std::string::npos;
}

void check_extension(const std::string& path, const Config& config) {
  static const std::set<std::string> known = {".cpp", ".cc", ".cxx", ".C"};
  if (known.contains(fs::path(path).extension().string())) return;
  throw config.error("code", fmt::format("{}: neither a C++ source (.cpp, .cc, .cxx) nor a shared "
                                         "library (.so); headers are found by the sources",
                                         fs::path(path).filename().string()));
}

/// Throws for ops that capture by reference, which a compiler accepts.
void check_captures_of(const std::vector<std::string>& sources) {
  std::string message;
  for (const auto& source : sources) {
    const std::string name = fs::path(source).filename().string();
    for (const auto& finding : check_captures(try_read_file(source).value_or(""), name)) {
      message += (message.empty() ? "" : "\n") + finding;
    }
  }
  if (!message.empty()) throw Error(message);
}

/// False if the process has loaded it: `eval_all` and tests read a config more than once.
bool is_first_time(const std::string& library) {
  static std::set<std::string> loaded;
  return loaded.insert(library).second;
}

}  // namespace

UserCode load_user_code(const Config& config, const CodeCopy* copy, Optimization optimization,
                        const Say& say, const InterruptCheck& interrupt) {
  std::vector<std::string> flags;
  if (config.has("code_flags")) flags = config.get<std::vector<std::string>>("code_flags");
  std::vector<std::string> sources;
  std::vector<std::string> libraries;
  for (auto& path : read_code(config, copy)) {
    if (is_library(path)) {
      libraries.push_back(std::move(path));
    } else {
      check_extension(path, config);
      sources.push_back(std::move(path));
    }
  }
  for (const auto& library : libraries) {
    const std::string name = fs::path(library).filename().string();
    check_built_against(library, name);
    if (is_first_time(library)) load_library(library, name);
  }
  if (sources.empty()) return {};
  check_captures_of(sources);
  const CompiledCode code = compile_code(sources, flags, optimization, say, interrupt);
  std::string names;
  for (const auto& source : sources) {
    names += (names.empty() ? "" : ", ") + fs::path(source).filename().string();
  }
  if (is_first_time(code.library)) load_library(code.library, names, code.files);
  return {code.files, code.compiler};
}

}  // namespace stepop
