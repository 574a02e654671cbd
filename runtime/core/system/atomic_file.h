#pragma once

#include <string>
#include <string_view>

#include "runtime/core/system/file_calls.h"

namespace stepop {

/// Writes a file that exists as a whole or not at all. The bytes go to `path` + `.tmp`; `commit()`
/// flushes them to the disk and renames the file, so a process that is killed at any moment leaves
/// the old or the new file at `path`. Without a commit the temporary file is removed. A temporary
/// file of a killed process is overwritten, or removed by sweep_temporaries.
///
/// Several writers may write one path at the same time, in this process or others: a lock (`flock`)
/// on the temporary file shows that it is in use, and the next writer takes `.2.tmp` and so on. The
/// last commit wins.
///
/// Every failed call throws Error with the operation, the path and the system's reason. Afterwards
/// the object can only be destroyed; `path` is unchanged, unless the last step failed: the flush of
/// the folder.
class AtomicFile {
 public:
  /// The end of a temporary file's name.
  static constexpr std::string_view kTemporarySuffix = ".tmp";

  /// Creates the temporary file; the folder must exist.
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends `bytes`; nothing is kept in memory.
  void write(std::string_view bytes);

  /// Renames the file to `path`. Nothing can be written afterwards.
  void commit();

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::string temporary_;
  OpenFile file_;
  OpenFile lock_;  ///< The same open file; holds the lock until the file is renamed.
  bool is_committed_ = false;
};

/// Writes `bytes` to `path` through an AtomicFile.
void write_file_atomically(const std::string& path, std::string_view bytes);

/// Renames the finished file `part`, which a library wrote, to `path` so that it survives a power
/// cut: fsync of the file, rename to `path` (replacing an existing file), fsync of the folder. Both
/// must be in one folder. Throws Error with the operation, the path and the reason; `path` is then
/// unchanged, unless the last step failed: the flush of the folder.
void rename_into_place(const std::string& part, const std::string& path);

/// The same for a file that is already flushed.
void rename_durably(const std::string& part, const std::string& path);

/// Makes `path` a symbolic link to `target`, which is relative to the folder of `path`. An existing
/// link is replaced at once: readers find the old target or the new one. The link is first made as
/// `path` + `.tmp`. Throws the same errors as rename_into_place.
void link_into_place(const std::string& target, const std::string& path);

/// Flushes the folder of `path`: only then are its names on the disk. Throws Error.
void flush_folder_of(const std::string& path);

}  // namespace stepop
