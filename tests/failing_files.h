#pragma once

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>

#include "runtime/core/system/file_calls.h"

namespace stepop {

enum class FileCall {
  kOpen,
  kWrite,
  kFsync,
  kTruncate,
  kAllocate,
  kClose,
  kRename,
  kUnlink,
  kSymlink,
  kMkdir,
  kAny,
};

/// While it lives, all writing of this process goes through it, from any thread: it counts the
/// system calls and makes those fail that a test names. To try every failure of an action:
///
///   for (int n = 1;; ++n) {
///     FailingFiles files;
///     files.fail(FileCall::kAny, n, ENOSPC);
///     const std::string message = message_of(action);
///     if (!files.has_failed()) break;  // it makes less than n calls
///     ...
///   }
class FailingFiles : public FileCalls {
 public:
  /// The `number`-th call of this kind from the start, counted from 1, fails with `reason`, an
  /// errno; up to `last`, if given. A close that fails has closed the file, as Linux does.
  void fail(FileCall kind, int number, int reason, int last = 0) {
    const std::lock_guard lock(mutex_);
    kind_ = kind;
    first_ = number;
    last_ = std::max(number, last);
    reason_ = reason;
  }

  /// As `fail`, and so does every call of the kind after it.
  void fail_from(FileCall kind, int number, int reason) {
    fail(kind, number, reason, std::numeric_limits<int>::max());
  }

  /// No write takes more than `bytes` bytes.
  void shorten_writes(size_t bytes) {
    const std::lock_guard lock(mutex_);
    longest_write_ = bytes;
  }

  /// The disk has room for `bytes` bytes; what is written beyond them finds it full.
  void leave_room(size_t bytes) {
    const std::lock_guard lock(mutex_);
    room_ = bytes;
  }

  /// Nothing fails any more.
  void mend() {
    const std::lock_guard lock(mutex_);
    first_ = last_ = 0;
    longest_write_ = room_ = kNoLimit;
  }

  /// How many calls of the kind there were.
  int count(FileCall kind = FileCall::kAny) const {
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find(kind);
    return found == counts_.end() ? 0 : found->second;
  }

  /// Whether a call was made to fail.
  bool has_failed() const { return failed_kind().has_value(); }

  /// The kind of the call that was made to fail last.
  std::optional<FileCall> failed_kind() const {
    const std::lock_guard lock(mutex_);
    return failed_kind_;
  }

  /// The path of its file.
  std::string failed_path() const {
    const std::lock_guard lock(mutex_);
    return failed_path_;
  }

  int open(const char* path, int flags, mode_t mode) override {
    return fails(FileCall::kOpen, path) ? -1 : FileCalls::open(path, flags, mode);
  }
  ssize_t write(int file, const void* data, size_t size) override {
    if (fails(FileCall::kWrite, path_of(file))) return -1;
    const std::lock_guard lock(mutex_);
    if (size > 0 && room_ == 0) return fail_now(FileCall::kWrite, ENOSPC);
    const ssize_t count = FileCalls::write(file, data, std::min({size, longest_write_, room_}));
    if (count > 0 && room_ != kNoLimit) room_ -= static_cast<size_t>(count);
    return count;
  }
  /// Nothing is flushed: no test cuts the power, and disks are slow.
  int fsync(int file) override { return fails(FileCall::kFsync, path_of(file)) ? -1 : 0; }
  int ftruncate(int file, off_t size) override {
    return fails(FileCall::kTruncate, path_of(file)) ? -1 : FileCalls::ftruncate(file, size);
  }
  int fallocate(int file, off_t offset, off_t size) override {
    return fails(FileCall::kAllocate, path_of(file)) ? -1
                                                     : FileCalls::fallocate(file, offset, size);
  }
  int close(int file) override {
    const std::string path = path_of(file);
    const int result = FileCalls::close(file);
    return fails(FileCall::kClose, path) ? -1 : result;
  }
  int rename(const char* from, const char* to) override {
    return fails(FileCall::kRename, to) ? -1 : FileCalls::rename(from, to);
  }
  int unlink(const char* path) override {
    return fails(FileCall::kUnlink, path) ? -1 : FileCalls::unlink(path);
  }
  int symlink(const char* target, const char* path) override {
    return fails(FileCall::kSymlink, path) ? -1 : FileCalls::symlink(target, path);
  }
  int mkdir(const char* path, mode_t mode) override {
    return fails(FileCall::kMkdir, path) ? -1 : FileCalls::mkdir(path, mode);
  }

 private:
  static constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();

  int fail_now(FileCall kind, int reason) {
    failed_kind_ = kind;
    errno = reason;
    return -1;
  }

  static std::string path_of(int file) {
    std::error_code failed;
    return std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(file), failed).string();
  }

  /// Counts a call, and sets errno when it is to fail.
  bool fails(FileCall kind, const std::string& path) {
    const std::lock_guard lock(mutex_);
    const int of_kind = ++counts_[kind];
    const int of_any = ++counts_[FileCall::kAny];
    if (kind_ != FileCall::kAny && kind_ != kind) return false;
    const int number = kind_ == FileCall::kAny ? of_any : of_kind;
    if (number < first_ || number > last_) return false;
    failed_path_ = path;
    return fail_now(kind, reason_) != 0;
  }

  mutable std::mutex mutex_;
  std::map<FileCall, int> counts_;
  FileCall kind_ = FileCall::kAny;
  int first_ = 0;
  int last_ = 0;
  int reason_ = 0;
  size_t longest_write_ = kNoLimit;
  size_t room_ = kNoLimit;
  std::optional<FileCall> failed_kind_;
  std::string failed_path_;
  FileCallsOverride override_{*this};  // last: from here on it is in use
};

}  // namespace stepop
