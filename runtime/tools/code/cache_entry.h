#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace stepop {

/// A compiled file in the cache.
struct CachedFile {
  std::string path;
  std::vector<std::string> code;  ///< The sources, and the user's headers that they include.
  std::string compiler = {};      ///< Its path and version; empty if an earlier version kept it.
};

/// What the cache has of one set of sources: `<key><extension>.json` lists the compiled files, one
/// for each version of the headers, newest first. The paths of the code do not matter, so a copy
/// finds the same files.
class CacheEntry {
 public:
  /// `sources` are absolute paths; `made_by` names everything else that is known before the
  /// compilation and changes its result: flags, compiler, versions. `extension` is the file's.
  CacheEntry(std::string folder, std::vector<std::string> sources, std::string made_by,
             std::string extension);

  /// The lock for the process that compiles.
  std::string lock_path() const { return base() + ".lock"; }
  /// Where that process may write the file before it is kept.
  std::string part_path() const { return base() + ".tmp"; }

  /// The file whose headers have not changed (except comments); nothing without such a file, or
  /// when another user may have written it.
  std::optional<CachedFile> find() const;

  /// Moves `part_path()`, compiled since `begin` by `compiler` with these headers, into the cache.
  /// If code was saved after `begin`, the file may be of either version: later calls of `find` do
  /// not return it.
  CachedFile keep(const std::vector<std::string>& headers, std::filesystem::file_time_type begin,
                  const std::string& compiler) const;

  /// Whether the sources are those that the entry was made for.
  bool is_current() const { return make_key() == key_; }

 private:
  struct Build;

  std::string make_key() const;
  std::string base() const { return folder_ + "/" + key_ + extension_; }
  std::string json_path() const { return base() + ".json"; }
  std::vector<Build> builds() const;

  std::string folder_;
  std::vector<std::string> sources_;
  std::string made_by_;
  std::string extension_;
  std::string key_;
  /// Headers' paths are relative to it; a copy of all files has the same paths.
  std::filesystem::path root_;
};

/// Removes libraries that were unused for 60 days, and objects that were unused for two; ignores
/// files that cannot be removed.
void remove_unused_entries(const std::string& folder);

}  // namespace stepop
