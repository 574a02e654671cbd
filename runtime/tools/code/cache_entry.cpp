#include "runtime/tools/code/cache_entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>

#include "runtime/core/base/json_text.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/checksum.h"
#include "runtime/core/system/owner.h"
#include "runtime/core/system/read_file.h"
#include "runtime/tools/code/code_text.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

constexpr auto kUnusedLibrary = std::chrono::hours(24 * 60);
/// As for precompiled headers: an object only saves time while the code beside it is edited.
constexpr auto kUnusedObject = std::chrono::hours(48);

/// Leaves out comments, so a changed comment does not change the checksum.
std::string checksum_of_code(const std::string& content) {
  return content_checksum(code_without_comments(content));
}

}  // namespace

/// One compiled file of an entry, as its list has it.
struct CacheEntry::Build {
  std::string file;  ///< Its name.
  Json headers;      ///< The checksum of each.
  std::string compiler = {};

  Json to_json() const { return {{"file", file}, {"headers", headers}, {"compiler", compiler}}; }
};

CacheEntry::CacheEntry(std::string folder, std::vector<std::string> sources, std::string made_by,
                       std::string extension)
    : folder_(std::move(folder)),
      sources_(std::move(sources)),
      made_by_(std::move(made_by)),
      extension_(std::move(extension)),
      key_(make_key()),
      root_(fs::path(sources_.front()).parent_path()) {}

std::string CacheEntry::make_key() const {
  Checksum sum;
  sum.add(made_by_ + extension_);
  for (const auto& source : sources_) {
    const std::string content = code_without_comments(try_read_file(source).value_or(""));
    sum.add(fmt::format("{} {}\n", fs::path(source).filename().string(), content.size()));
    sum.add(content);
  }
  return sum.text();
}

/// A file that another user put there is ignored.
std::vector<CacheEntry::Build> CacheEntry::builds() const {
  const auto text = foreign_reason(json_path()).empty() ? try_read_file(json_path())
                                                        : std::optional<std::string>();
  const Json all = text ? try_read_ordered_json(*text) : Json::array();
  std::vector<Build> whole;
  for (const auto& build : all) {  // damaged entries are compiled again
    const bool is_whole = build.is_object() && build.contains("file") &&
                          build["file"].is_string() && build.contains("headers") &&
                          build["headers"].is_object();
    if (!is_whole) continue;
    const auto compiler = build.find("compiler");
    const bool is_known = compiler != build.end() && compiler->is_string();
    whole.push_back({build["file"], build["headers"], is_known ? *compiler : Json("")});
  }
  return whole;
}

std::optional<CachedFile> CacheEntry::find() const {
  for (const auto& build : builds()) {
    CachedFile file{folder_ + "/" + build.file, sources_, build.compiler};
    bool is_same = fs::exists(file.path) && foreign_reason(file.path).empty();
    for (const auto& [path, checksum] : build.headers.items()) {
      file.code.push_back((root_ / path).lexically_normal().string());
      const auto content = try_read_file(file.code.back());
      is_same = is_same && content && checksum_of_code(*content) == checksum.get<std::string>();
    }
    if (is_same) {
      std::error_code ignored;  // the cache may belong to another user
      fs::last_write_time(json_path(), fs::file_time_type::clock::now(), ignored);
      return file;
    }
  }
  return std::nullopt;
}

CachedFile CacheEntry::keep(const std::vector<std::string>& headers, fs::file_time_type begin,
                            const std::string& compiler) const {
  CachedFile file{"", sources_, compiler};
  Json sums = Json::object();
  for (const auto& header : headers) {
    file.code.push_back(header);
    sums[fs::path(header).lexically_relative(root_).string()] =
        checksum_of_code(try_read_file(header).value_or(""));
  }
  // A header that was saved during the compilation may differ from the compiled header.
  const bool is_sure =
      is_current() && std::all_of(file.code.begin(), file.code.end(), [&](const auto& path) {
        std::error_code failed;
        return fs::last_write_time(path, failed) < begin && !failed;
      });
  const std::string hash = content_checksum(write_json(sums) + (is_sure ? "" : "?")).substr(0, 8);
  const std::string name = key_ + "-" + hash + extension_;
  file.path = folder_ + "/" + name;
  rename_into_place(part_path(), file.path);
  if (!is_sure) return file;
  Json all = Json::array({Build{name, std::move(sums), compiler}.to_json()});
  for (const auto& build : builds()) {
    if (build.file != name) all.push_back(build.to_json());
  }
  write_file_atomically(json_path(), write_json(all, 1) + "\n");
  return file;
}

void remove_unused_entries(const std::string& folder) {
  std::error_code ignored;
  const auto now = fs::file_time_type::clock::now();
  std::vector<std::string> keys;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const fs::path& path = entry.path();
    const bool is_json = path.extension() == ".json";
    const fs::path base = is_json ? path.stem() : path.filename();  // <key>.so
    const auto limit = base.extension() == ".o" ? kUnusedObject : kUnusedLibrary;
    if (entry.last_write_time(ignored) >= now - limit) continue;
    if (is_json) {
      keys.push_back(base.stem().string());
    } else if (base.extension() == ".o" || base.extension() == ".so") {
      // What was compiled while a header was saved has no JSON beside it: <key>-<hash>.so.
      const std::string name = base.stem().string();
      const std::string key = name.substr(0, name.rfind('-'));
      if (!fs::exists(fs::path(folder) / (key + base.extension().string() + ".json"), ignored)) {
        keys.push_back(name);
      }
    }
  }
  for (const auto& key : keys) {
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      if (entry.path().filename().string().starts_with(key)) fs::remove(entry.path(), ignored);
    }
  }
}

}  // namespace stepop
