#pragma once

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <string>
#include <thread>

#include "tests/scratch_folder.h"

namespace stepop {

/// A disk of a few kilobytes that is really full when it is: a file system in memory of its own.
/// Only the threads that on_small_disk starts see it, so it is gone with them whatever happens.
class SmallDisk {
 public:
  SmallDisk(std::string path, size_t bytes) : path_(std::move(path)) {
    error_ = mount("tmpfs", bytes) ? 0 : errno;
  }

  /// Why there is none: nobody but root may mount one.
  int error() const { return error_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  void resize(size_t bytes) { CHECK(mount("tmpfs", bytes, MS_REMOUNT)); }

  /// Takes all the room that is left, as another program might; returns the file that has it.
  std::string fill() const {
    const std::string path = *this / "others.bin";
    std::ofstream file(path, std::ios::binary | std::ios::app);
    while (file.write(std::string(4096, 'x').data(), 4096).flush()) continue;
    return path;
  }

 private:
  bool mount(const char* type, size_t bytes, unsigned long flags = 0) const {
    const std::string options = "size=" + std::to_string(bytes);
    return ::mount("none", path_.c_str(), type, flags, options.c_str()) == 0;
  }

  std::string path_;
  int error_ = 0;
};

/// Calls `test` with a disk of `bytes` bytes, a multiple of 4096. Where no disk can be made it only
/// says so, and returns false.
template <class Test>
bool on_small_disk(size_t bytes, const Test& test) {
  const ScratchFolder folder;
  std::exception_ptr error;
  int refused = 0;
  std::thread thread([&] {
    try {
      if (unshare(CLONE_NEWNS) != 0 ||
          ::mount("none", "/", "", MS_REC | MS_PRIVATE, nullptr) != 0) {
        refused = errno;
        return;
      }
      SmallDisk disk(folder.path(), bytes);
      if ((refused = disk.error()) == 0) test(disk);
    } catch (...) {
      error = std::current_exception();
    }
  });
  thread.join();
  if (error) std::rethrow_exception(error);
  if (refused == 0) return true;
  MESSAGE("skipped: cannot mount a small disk: " << std::string(std::strerror(refused)));
  return false;
}

}  // namespace stepop
