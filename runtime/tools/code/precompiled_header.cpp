#include "runtime/tools/code/precompiled_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <vector>

#include "runtime/core/base/abi.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/checksum.h"
#include "runtime/core/system/file_lock.h"
#include "runtime/core/system/folders.h"
#include "runtime/core/system/owner.h"
#include "runtime/core/system/read_file.h"
#include "runtime/tools/code/build_settings.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

/// A key for precompiled headers: compiler, flags, versions and the content of our headers.
std::string key_of(const Compiler& compiler) {
  const BuildSettings& settings = build_settings();
  Checksum sum;
  sum.add(compiler.identity() + settings.text + STEPOP_BUILT_AGAINST);
  for (const auto& folder : settings.includes) {
    std::vector<fs::path> headers;
    for (const char* part : {"stepop", "runtime", "eval_out"}) {
      const fs::path root = fs::path(folder) / part;
      if (!fs::is_directory(root)) continue;
      for (const auto& entry : fs::recursive_directory_iterator(root)) {
        if (entry.path().extension() == ".h") headers.push_back(entry.path());
      }
    }
    std::sort(headers.begin(), headers.end());
    for (const auto& path : headers) sum.add(try_read_file(path.string()).value_or(""));
  }
  return sum.text();
}

bool is_there(const fs::path& folder, const std::string& key) {
  for (const auto& path : {folder, folder / "key", folder / "precompiled.h.gch"}) {
    if (!foreign_reason(path.string()).empty()) return false;  // code is compiled with it
  }
  return try_read_file((folder / "key").string()) == key &&
         fs::exists(folder / "precompiled.h.gch");
}

/// The key is written last: a folder with a key is complete.
void make(const Compiler& compiler, const fs::path& folder, const std::string& key) {
  make_folders(folder.string());
  const FileLock lock((folder / "lock").string());
  if (is_there(folder, key)) return;  // another process made it meanwhile
  fs::remove(folder / "key");
  const std::string header = (folder / "precompiled.h").string();
  write_file_atomically(header, "#include <stepop/stepop.h>\n");
  const std::string part = header + ".gch.tmp";
  compiler.precompile(header, part);
  fs::rename(part, header + ".gch");
  write_file_atomically((folder / "key").string(), key);
}

/// Each has 700 MB, and each build of stepop has its own; removes headers unused for two days.
void remove_unused_headers(const fs::path& cache) {
  constexpr auto kUnusedFor = std::chrono::hours(48);
  std::error_code ignored;
  std::vector<fs::path> unused;
  for (const auto& entry : fs::directory_iterator(cache, ignored)) {
    if (!entry.path().filename().string().starts_with("headers-")) continue;
    const auto used = fs::last_write_time(entry.path() / "key", ignored);
    if (!ignored && used < fs::file_time_type::clock::now() - kUnusedFor)
      unused.push_back(entry.path());
  }
  for (const auto& folder : unused) fs::remove_all(folder, ignored);
}

}  // namespace

std::optional<std::string> precompiled_header(const Compiler& compiler, const std::string& folder,
                                              const Say& say) {
  if (!compiler.is_gcc()) return std::nullopt;
  const std::string key = key_of(compiler);
  const fs::path own = build_settings().headers;
  if (is_there(own, key)) return (own / "precompiled.h").string();
  const fs::path cached = fs::path(folder) / ("headers-" + key);
  if (!is_there(cached, key)) {
    say("precompiling the headers of stepop and LibTorch, once (about half a minute)");
    remove_unused_headers(folder);
    make(compiler, cached, key);
  }
  std::error_code ignored;  // the time marks the last use
  fs::last_write_time(cached / "key", fs::file_time_type::clock::now(), ignored);
  return (cached / "precompiled.h").string();
}

void prepare_precompiled_header(const Compiler& compiler) {
  if (!compiler.is_gcc()) return;
  const std::string key = key_of(compiler);
  if (!is_there(build_settings().headers, key)) make(compiler, build_settings().headers, key);
}

}  // namespace stepop
