#include "runtime/core/system/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <random>
#include <thread>

#include "runtime/core/system/file_lock.h"

namespace stepop {
namespace {

bool is_same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/// Opens a temporary file for `path` that no other writer uses, and returns its name in
/// `temporary`.
OpenFile open_temporary(const std::string& path, std::string& temporary) {
  const std::string suffix(AtomicFile::kTemporarySuffix);
  for (int i = 1;;) {
    temporary = i == 1 ? path + suffix : fmt::format("{}.{}{}", path, i, suffix);
    const std::string operation = "create " + temporary;
    OpenFile file = open_file(temporary, O_WRONLY | O_CREAT, operation);
    const Locked locked = try_lock(file);
    if (locked == Locked::kHeld) {
      ++i;
    } else if (locked == Locked::kUnknown) {
      // Without locks, use a unique name. The file that was just opened may be another writer's: it
      // stays.
      static std::atomic<int> count = 0;
      temporary = fmt::format("{}.{}-{}{}", path, ::getpid(), ++count, suffix);
      return open_file(temporary, O_WRONLY | O_CREAT | O_TRUNC, "create " + temporary);
    } else {
      struct stat its = {};
      struct stat named = {};
      if (::fstat(file.number(), &its) != 0) fail_file(operation, errno);
      // Before it was locked, another writer may have renamed or removed the file.
      if (::stat(temporary.c_str(), &named) != 0 || !is_same_file(its, named)) continue;
      // A killed process left some bytes.
      if (its.st_size > 0 && file_calls().ftruncate(file.number(), 0) != 0) {
        fail_file(operation, errno);
      }
      return file;
    }
  }
}

/// Waits up to 10 ms, the longer the more attempts there were, so that one of two processes that
/// are in each other's way is done before the other comes again. Not for two threads at once.
void wait_before(int attempt) {
  static std::minstd_rand random(static_cast<unsigned>(::getpid()));
  std::uniform_int_distribution<int> most(0, 100 * attempt);
  std::this_thread::sleep_for(std::chrono::microseconds(most(random)));
}

/// Flushes the file or folder `path` to the disk. `what` is for the message: `the folder `.
void flush(const std::string& path, int flags, const std::string& what) {
  flush_file(open_file(path, O_RDONLY | flags, "open " + what + path), what + path);
}

}  // namespace

AtomicFile::AtomicFile(std::string path)
    : path_(std::move(path)), file_(open_temporary(path_, temporary_)) {
  lock_ = OpenFile(::fcntl(file_.number(), F_DUPFD_CLOEXEC, 0));
}

AtomicFile::~AtomicFile() {
  // Removed while it is locked: afterwards it may belong to another writer.
  if (!is_committed_) file_calls().unlink(temporary_.c_str());
}

void AtomicFile::write(std::string_view bytes) {
  size_t written = 0;
  const int reason = write_all(file_, bytes, written);
  if (reason != 0) fail_file("write " + temporary_, reason);
}

void AtomicFile::commit() {
  flush_file(file_, temporary_);
  if (const int reason = file_.close()) fail_file("close " + temporary_, reason);
  rename_durably(temporary_, path_);
  is_committed_ = true;
}

void write_file_atomically(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

void rename_into_place(const std::string& part, const std::string& path) {
  flush(part, 0, "");
  rename_durably(part, path);
}

void rename_durably(const std::string& part, const std::string& path) {
  if (file_calls().rename(part.c_str(), path.c_str()) != 0) {
    fail_file(fmt::format("rename {} to {}", part, path), errno);
  }
  flush_folder_of(path);
}

void link_into_place(const std::string& target, const std::string& path) {
  // All links of a path are made under one temporary name, which a lock keeps for one thread. Other
  // processes have it too: whoever comes across them tries again, each time a little later.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  constexpr int kMostAttempts = 100;
  FileCalls& calls = file_calls();
  const std::string temporary = path + std::string(AtomicFile::kTemporarySuffix);
  for (int attempt = 1;; ++attempt) {
    if (calls.symlink(target.c_str(), temporary.c_str()) != 0) {
      // A killed process may have left such a link, or another process may be making one at this
      // moment.
      const bool is_away =
          errno == EEXIST && (calls.unlink(temporary.c_str()) == 0 || errno == ENOENT);
      if (!is_away || attempt == kMostAttempts) {
        fail_file(fmt::format("create the link {} to {}", temporary, target), errno);
      }
      if (attempt > 1) wait_before(attempt);
      continue;
    }
    if (calls.rename(temporary.c_str(), path.c_str()) == 0) return flush_folder_of(path);
    const int reason = errno;
    if (reason == ENOENT && attempt < kMostAttempts) {
      wait_before(attempt);  // another process removed it as a leftover
      continue;
    }
    calls.unlink(temporary.c_str());
    fail_file(fmt::format("rename {} to {}", temporary, path), reason);
  }
}

void flush_folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  flush(folder.empty() ? "." : folder, O_DIRECTORY, "the folder ");
}

}  // namespace stepop
