#pragma once

#include <sys/types.h>

#include <string>

namespace stepop {

/// The system calls below every file that must survive, so that a test can make one of them fail.
struct FileCalls {
  int (*open)(const char* path, int flags, mode_t mode);
  ssize_t (*write)(int file, const void* data, size_t size);
  int (*fsync)(int file);
  int (*close)(int file);
  int (*rename)(const char* from, const char* to);

  static const FileCalls& system();
};

/// Gives the finished file `part` its real name so that it survives a power cut: fsync of the file,
/// rename to `path` (replacing what is there), fsync of the folder. Both must be in one folder.
/// Throws Error with the operation, the path and the reason; `path` is then as it was, unless it is
/// the last step that failed: the flush of the folder.
void publish_file(const std::string& part, const std::string& path,
                  const FileCalls& calls = FileCalls::system());

/// The same for a file that was flushed already.
void rename_durably(const std::string& part, const std::string& path, const FileCalls& calls);

/// Throws Error `cannot <operation>: <the system's reason>`.
[[noreturn]] void fail_file(const std::string& operation, int reason);

}  // namespace stepop
