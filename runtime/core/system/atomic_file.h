#pragma once

#include <string>
#include <string_view>

#include "runtime/core/system/file_calls.h"

namespace stepop {

/// Writes a file that is either there as a whole or not at all. The bytes go to `path` + `.tmp`;
/// `commit()` flushes them to the disk and renames the file, so a process that is killed at any
/// moment leaves the old file or the new one at `path`. Without a commit the temporary file is
/// removed; one that a killed process left behind is overwritten, or swept by sweep_temporaries.
///
/// Several may write one path at a time, in this process or others: a lock (`flock`) on the
/// temporary file shows that it is in use, and the next one takes `.2.tmp` and so on. The last
/// commit wins.
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
  std::string path_;
  std::string temporary_;
  OpenFile file_;
  OpenFile lock_;  ///< The same open file: holds the lock until the file has its name.
  bool is_committed_ = false;
};

/// Writes `bytes` to `path` through an AtomicFile.
void write_file_atomically(const std::string& path, std::string_view bytes);

/// Gives the finished file `part`, which a library wrote, its real name so that it survives a power
/// cut: fsync of the file, rename to `path` (replacing what is there), fsync of the folder. Both
/// must be in one folder. Throws Error with the operation, the path and the reason; `path` is then
/// as it was, unless it is the last step that failed: the flush of the folder.
void rename_into_place(const std::string& part, const std::string& path);

/// The same for a file that was flushed already.
void rename_durably(const std::string& part, const std::string& path);

/// Makes `path` a symbolic link to `target`, which is relative to the folder of `path`, or points
/// the link that is there elsewhere: readers find the old target or the new one. It appears
/// as `path` + `.tmp` first. Fails as rename_into_place does.
void link_into_place(const std::string& target, const std::string& path);

/// Flushes the folder that holds `path`: names in it are on the disk only then. Throws Error.
void flush_folder_of(const std::string& path);

}  // namespace stepop
