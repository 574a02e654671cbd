#include "runtime/tools/project/saved_files.h"

#include <fmt/format.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/core/base/error.h"

namespace stepop {
namespace {

bool is_of_training(const std::string& name) {
  static const std::set<std::string> known = {".yaml", ".yml", ".cpp", ".cc", ".cxx",
                                              ".C",    ".h",   ".hpp", ".hh", ".hxx"};
  return !name.starts_with('.') && known.contains(std::filesystem::path(name).extension().string());
}

}  // namespace

SavedFiles::SavedFiles(std::set<std::string> folders)
    : folders_(std::move(folders)), file_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  const auto fail = [&](const std::string& what) {
    const std::string reason = std::generic_category().message(errno);
    if (file_ >= 0) ::close(file_);
    throw Error(fmt::format("cannot watch {}: {}", what, reason));
  };
  if (file_ < 0) fail("files");
  for (const auto& folder : folders_) {
    // Editors write a file in place, or another file that gets its name.
    if (::inotify_add_watch(file_, folder.c_str(), IN_CLOSE_WRITE | IN_MOVED_TO) < 0) fail(folder);
  }
}

SavedFiles::~SavedFiles() { ::close(file_); }

std::set<std::string> SavedFiles::saved() {
  std::set<std::string> names;
  bool is_first = true;
  alignas(inotify_event) std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t size = ::read(file_, buffer.data(), buffer.size());
    if (size <= 0) {
      if (names.empty() || !is_first) return names;
      is_first = false;
      constexpr std::chrono::milliseconds kLast{100};
      std::this_thread::sleep_for(kLast);
      continue;
    }
    for (ssize_t at = 0; at < size;) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof event);
      if (event.len > 0) {
        const std::string name = buffer.data() + at + sizeof event;
        if (is_of_training(name)) names.insert(name);
      }
      at += static_cast<ssize_t>(sizeof event + event.len);
    }
  }
}

}  // namespace stepop
