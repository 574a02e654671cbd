#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <utility>

#include "runtime/core/base/error.h"

struct stat;

namespace stepop {

/// The system calls with which stepop writes files and folders: the one place where a test can make
/// any of them fail. Exceptions: the HDF5 library makes its own calls, and calls whose failure is
/// harmless are made directly (setting the time of a lock's file, removing files that are no longer
/// read). Each function behaves like the call of its name, including the result and `errno`.
class FileCalls {
 public:
  virtual ~FileCalls() = default;

  virtual int open(const char* path, int flags, mode_t mode);
  virtual ssize_t write(int file, const void* data, size_t size);
  virtual int fsync(int file);
  virtual int ftruncate(int file, off_t size);
  /// With the default mode of the call.
  virtual int fallocate(int file, off_t offset, off_t size);
  virtual int close(int file);
  virtual int rename(const char* from, const char* to);
  virtual int unlink(const char* path);
  virtual int symlink(const char* target, const char* path);
  virtual int mkdir(const char* path, mode_t mode);
};

/// The calls in use: the system's calls, except in tests.
FileCalls& file_calls();

/// Replaces the calls of all threads during its lifetime. For tests only; made and destroyed while
/// no file is being written.
class FileCallsOverride {
 public:
  explicit FileCallsOverride(FileCalls& calls);
  ~FileCallsOverride();
  FileCallsOverride(const FileCallsOverride&) = delete;
  FileCallsOverride& operator=(const FileCallsOverride&) = delete;

 private:
  FileCalls* before_;
};

/// A write failed because a disk is full, has an error, or takes no more writes. No writer can save
/// anything there now; the same write may succeed when there is room.
class DiskError : public Error {
 public:
  using Error::Error;
};

/// Throws Error `cannot <operation>: <the system's reason>`; a DiskError for a reason of that kind.
[[noreturn]] void fail_file(const std::string& operation, int reason);

/// An open file (a file descriptor), which is closed with this object. Empty after default
/// construction, after a move, and for the -1 of a call that failed.
class OpenFile {
 public:
  OpenFile() = default;
  /// Takes over the result of open(2), pipe(2) or a similar call.
  explicit OpenFile(int number) : number_(number) {}
  OpenFile(OpenFile&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  OpenFile& operator=(OpenFile&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~OpenFile();

  explicit operator bool() const { return number_ >= 0; }

  /// The descriptor for system calls; -1 when empty.
  int number() const { return number_; }

  /// Closes the file before the object ends. Returns 0 or the `errno` of a failure: a network file
  /// system may report a lost write only here.
  int close();

 private:
  int number_ = -1;
};

/// Opens a file like `open(2)`; throws Error `cannot <operation>: <reason>`.
OpenFile open_file(const std::string& path, int flags, const std::string& operation);

/// Opens a file for reading, and fills `status`. Throws Error `cannot read <path>: <reason>`, also
/// for a folder and for anything but a regular file: a pipe would wait for a writer, a device has
/// no end.
OpenFile open_regular_file(const std::string& path, struct stat& status);

/// Writes all of `bytes`, with as many calls as needed. Returns 0 or the `errno` of the call that
/// failed; `written` is the number of bytes that were written.
int write_all(const OpenFile& file, std::string_view bytes, size_t& written);

/// Flushes a file to the disk; throws Error `cannot flush <what>: <reason>`. Does nothing for a
/// file that cannot be flushed: a pipe, a folder on some network file systems.
void flush_file(const OpenFile& file, const std::string& what);

}  // namespace stepop
