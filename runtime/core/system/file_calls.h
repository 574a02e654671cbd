#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <utility>

#include "runtime/core/base/error.h"

struct stat;

namespace stepop {

/// The system calls by which stepop writes files and folders: the one place where a test can make
/// any of them fail. Others are made by the HDF5 library, or may fail without harm: those that set
/// the time of a lock's file and that remove files no longer read. Each does what the call of its
/// name does, and returns and sets `errno` as that does.
class FileCalls {
 public:
  virtual ~FileCalls() = default;

  virtual int open(const char* path, int flags, mode_t mode);
  virtual ssize_t write(int file, const void* data, size_t size);
  virtual int fsync(int file);
  virtual int ftruncate(int file, off_t size);
  /// In its default mode.
  virtual int fallocate(int file, off_t offset, off_t size);
  virtual int close(int file);
  virtual int rename(const char* from, const char* to);
  virtual int unlink(const char* path);
  virtual int symlink(const char* target, const char* path);
  virtual int mkdir(const char* path, mode_t mode);
};

/// The calls in use: the system's own, but in a test.
FileCalls& file_calls();

/// Replaces the calls of all threads while it lives. For tests only; it is made and destroyed while
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

/// A write that failed since a disk is full, has an error, or takes no more writes: whoever wrote,
/// nothing more can be saved there, and the same can be done again when there is room.
class DiskError : public Error {
 public:
  using Error::Error;
};

/// Throws Error `cannot <operation>: <the system's reason>`; a DiskError for such a reason.
[[noreturn]] void fail_file(const std::string& operation, int reason);

/// An open file (a file descriptor), which is closed with this object. Empty when made by default,
/// moved from, or made of the -1 of a call that failed.
class OpenFile {
 public:
  OpenFile() = default;
  /// Takes over what open(2), pipe(2) or such returned.
  explicit OpenFile(int number) : number_(number) {}
  OpenFile(OpenFile&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  OpenFile& operator=(OpenFile&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~OpenFile();

  explicit operator bool() const { return number_ >= 0; }

  /// For the system's calls; -1 when empty.
  int number() const { return number_; }

  /// Closes the file before the object ends. Returns 0 or the `errno` of what failed: a network
  /// file system may report only here that a write was lost.
  int close();

 private:
  int number_ = -1;
};

/// Opens a file as `open(2)` does; throws Error `cannot <operation>: <reason>`.
OpenFile open_file(const std::string& path, int flags, const std::string& operation);

/// Opens a file to read it, and fills `status`. Throws Error `cannot read <path>: <reason>`, also
/// for a folder and for what is no regular file: a pipe would wait for who writes into it, a device
/// has no end.
OpenFile open_regular_file(const std::string& path, struct stat& status);

/// Writes all of `bytes`, however many calls that takes. Returns 0 or the `errno` of the call that
/// failed; `written` is what got there.
int write_all(const OpenFile& file, std::string_view bytes, size_t& written);

/// Flushes a file to the disk; throws Error `cannot flush <what>: <reason>`. Does nothing for one
/// that cannot be flushed: a pipe, a folder on some network file systems.
void flush_file(const OpenFile& file, const std::string& what);

}  // namespace stepop
