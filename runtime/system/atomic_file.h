#pragma once

#include <string>
#include <string_view>

namespace stepop {

/// Writes a file that is either there as a whole or not at all. The bytes go to `path` + `.tmp`;
/// `commit()` flushes them to the disk and renames the file, so a process that is killed at any
/// moment leaves the old file or the new one at `path`. Without a commit the temporary file is
/// removed; one that a killed process left behind is overwritten, or swept by sweep_temporaries. A
/// lock (`flock`) on it tells that it is in use.
///
/// Every failed call throws Error with the operation, the path and the system's reason. After one
/// the object can only be destroyed; `path` is as it was, unless it is the last step that failed:
/// the flush of the folder.
class AtomicFile {
 public:
  /// What a temporary file's name ends with.
  static constexpr std::string_view kTemporarySuffix = ".tmp";

  /// Creates the temporary file; the folder must exist.
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends `bytes`; nothing is kept in memory.
  void write(std::string_view bytes);

  /// Puts the file in its place. Nothing can be written afterwards.
  void commit();

  const std::string& path() const { return path_; }

 private:
  void close_file();

  std::string path_;
  std::string temporary_;
  int file_ = -1;
  bool is_committed_ = false;
};

/// Writes `bytes` to `path` through an AtomicFile.
void write_file_atomically(const std::string& path, std::string_view bytes);

}  // namespace stepop
