#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/core/config/config.h"

namespace stepop {

/// The files of a data set as its site hands them out: in a folder, or in an archive, .tar or
/// .tar.gz, which is read whole.
class DatasetFiles {
 public:
  /// A file read, and how messages name it.
  struct File {
    std::string bytes;
    std::string name;
  };

  /// Throws UsageError at `path` of `params` when there is no such folder or file.
  DatasetFiles(std::string path, const Config& params);

  const std::string& path() const { return path_; }

  /// Whether there is a file of that name, relative to the folder or in the archive.
  bool has(const std::string& name) const;

  /// The first of these that is there, unpacked when it is gzip. Throws Error with all of them when
  /// none is.
  File read(const std::vector<std::string>& names) const;

 private:
  std::string path_;
  bool is_archive_ = false;
  std::map<std::string, std::string> members_;  ///< Of an archive.
};

}  // namespace stepop
