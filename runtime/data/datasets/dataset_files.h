#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/core/config/config.h"

namespace stepop {

/// The files of a data set as its site distributes them: in a folder, or in an archive, .tar or
/// .tar.gz, which is read whole.
class DatasetFiles {
 public:
  /// A file's bytes, and its name in messages.
  struct File {
    std::string bytes;
    std::string name;
  };

  /// Throws UsageError at `path` of `params` when there is no such folder or file.
  DatasetFiles(std::string path, const Config& params);

  const std::string& path() const { return path_; }

  /// Whether a file `name` exists, relative to the folder or in the archive.
  bool has(const std::string& name) const;

  /// The first of these files that exists, unpacked when it is gzip. Throws Error with all names
  /// when none exists.
  File read(const std::vector<std::string>& names) const;

 private:
  std::string path_;
  bool is_archive_ = false;
  std::map<std::string, std::string> members_;  ///< The files of an archive.
};

}  // namespace stepop
