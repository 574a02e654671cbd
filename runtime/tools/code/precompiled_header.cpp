#include "runtime/tools/code/precompiled_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/core/base/abi.h"
#include "runtime/core/base/error.h"
#include "runtime/core/base/json_text.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/shown_text.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/cache_folder.h"
#include "runtime/core/system/checksum.h"
#include "runtime/core/system/file_lock.h"
#include "runtime/core/system/folders.h"
#include "runtime/core/system/owner.h"
#include "runtime/core/system/read_file.h"
#include "runtime/tools/code/build_settings.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;

constexpr const char* kHeader = "precompiled.h";

bool is_there(const Compiler& compiler, const fs::path& folder, const std::string& key) {
  const fs::path header = folder / (std::string(kHeader) + compiler.precompiled_extension());
  for (const auto& path : {folder, folder / "key", header}) {
    if (!foreign_reason(path.string()).empty()) return false;  // code is compiled with it
  }
  return try_read_file((folder / "key").string()) == key && fs::exists(header);
}

/// What `measured.json` has: `{"<compiler>": {"seconds": 14.2, "bytes": 132484380}}`.
Json measured_headers(const fs::path& cache) {
  const auto text = try_read_file((cache / kMeasuredHeaders).string());
  Json all = text ? try_read_json(*text) : Json::object();
  return all.is_object() ? all : Json::object();
}

/// ` (14 s and 132.5 MB the last time here)`; nothing when this compiler has made no header yet.
std::string last_time(const fs::path& cache, const Compiler& compiler) {
  const Json measured = measured_headers(cache).value(compiler.identity(), Json::object());
  const auto number = [&](const char* name) {
    return measured.is_object() && measured.contains(name) && measured[name].is_number()
               ? measured[name].get<double>()
               : 0.0;
  };
  if (number("seconds") <= 0 || number("bytes") <= 0) return "";
  return fmt::format(" ({:.0f} s and {} the last time here)", number("seconds"),
                     size_text(number("bytes")));
}

void keep_measured(const fs::path& cache, const Compiler& compiler, double seconds, double bytes) {
  Json all = measured_headers(cache);
  all[compiler.identity()] = {{"seconds", seconds}, {"bytes", bytes}};
  try {
    make_private_folder(cache.string());
    write_file_atomically((cache / kMeasuredHeaders).string(), write_json(all, 1) + "\n");
  } catch (const Error&) {  // the next header is made without it
  }
}

/// The key is written last: a folder with a key is complete. Without a folder `cache` nothing of
/// the time is known, and nothing is kept.
void make(const Compiler& compiler, const fs::path& folder, const std::string& key,
          const fs::path& cache, const Say& say) {
  say("precompiling the headers of stepop and LibTorch, once" + last_time(cache, compiler));
  make_folders(folder.string());
  const FileLock lock((folder / "lock").string());
  if (is_there(compiler, folder, key)) return;  // another process made it meanwhile
  fs::remove(folder / "key");
  const std::string header = (folder / kHeader).string();
  for (const char* extension : {".gch", ".pch"}) fs::remove(header + extension);
  write_file_atomically(header, "#include <stepop/stepop.h>\n");
  const std::string part = header + ".tmp";
  const auto begin = std::chrono::steady_clock::now();
  compiler.precompile(header, part);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  const auto bytes = static_cast<double>(fs::file_size(part));
  fs::rename(part, header + compiler.precompiled_extension());
  write_file_atomically((folder / "key").string(), key);
  if (!cache.empty()) keep_measured(cache, compiler, time.count(), bytes);
  say(fmt::format("precompiled in {:.0f} s: {} in {}", time.count(), size_text(bytes),
                  shown_text(folder.string())));
}

/// Each has 700 MB with GCC and 130 MB with Clang, and builds share one only while stepop's headers
/// stay the same; removes headers unused for two days.
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

std::string precompiled_header_key(const Compiler& compiler) {
  const BuildSettings& settings = build_settings();
  Checksum sum;
  const auto add_place = [&](const fs::path& path) {  // Clang remembers paths and times, too
    std::error_code failed;
    const auto time = fs::last_write_time(path, failed).time_since_epoch().count();
    if (compiler.is_clang() && !failed) sum.add(fmt::format("{} {}\n", path.string(), time));
  };
  sum.add(compiler.identity() + settings.text + STEPOP_BUILT_AGAINST);
  for (const auto& folder : settings.includes) {
    std::vector<fs::path> headers;
    for (const char* part : {"stepop", "runtime", "eval_out"}) {
      const fs::path root = fs::path(folder) / part;
      if (!fs::is_directory(root)) continue;
      for (fs::recursive_directory_iterator entry(root), end; entry != end; ++entry) {
        if (entry->path() == root / "tools")
          entry.disable_recursion_pending();  // not for user code
        if (entry->path().extension() == ".h") headers.push_back(entry->path());
      }
    }
    std::sort(headers.begin(), headers.end());
    for (const auto& path : headers) {
      sum.add(try_read_file(path.string()).value_or(""));
      add_place(path);
    }
  }
  for (const auto& flag : settings.flags) add_place(fs::path(flag) / "ATen/ATen.h");
  return sum.text();
}

std::vector<std::string> precompiled_flags(const Compiler& compiler, const std::string& key,
                                           const std::string& folder, const Say& say) {
  if (*compiler.precompiled_extension() == 0) return {};
  const fs::path own = build_settings().headers;
  if (is_there(compiler, own, key)) return compiler.flags_for((own / kHeader).string());
  const fs::path cached = fs::path(folder) / ("headers-" + key);
  if (!is_there(compiler, cached, key)) {
    remove_unused_headers(folder);
    make(compiler, cached, key, folder, say);
  }
  std::error_code ignored;  // the time marks the last use
  fs::last_write_time(cached / "key", fs::file_time_type::clock::now(), ignored);
  return compiler.flags_for((cached / kHeader).string());
}

void prepare_precompiled_header(const Compiler& compiler, const Say& say) {
  if (*compiler.precompiled_extension() == 0) return;
  const std::string key = precompiled_header_key(compiler);
  if (is_there(compiler, build_settings().headers, key)) return;
  std::string cache;
  try {
    cache = cache_folder("what was measured");
  } catch (const Error&) {  // without a home there is no cache
  }
  make(compiler, build_settings().headers, key, cache, say);
}

}  // namespace stepop
