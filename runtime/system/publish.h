#pragma once

#include <string>

namespace stepop {

/// Gives the finished file `part` its real name so that it survives a power cut: fsync of the file,
/// rename to `path` (replacing what is there), fsync of the folder. Both must be in one folder.
/// Throws Error with the operation, the path and the reason; `path` is then as it was, unless it is
/// the last step that failed: the flush of the folder.
void publish_file(const std::string& part, const std::string& path);

/// The same for a file that was flushed already.
void rename_durably(const std::string& part, const std::string& path);

/// Makes `path` a symbolic link to `target`, which is relative to the folder of `path`, or points
/// the link that is there elsewhere: whoever looks finds the old target or the new one. It appears
/// as `path` + `.tmp` first. Fails as publish_file does.
void publish_symlink(const std::string& target, const std::string& path);

/// Flushes the folder that holds `path`: names in it are on the disk only then. Throws Error.
void flush_folder_of(const std::string& path);

}  // namespace stepop
