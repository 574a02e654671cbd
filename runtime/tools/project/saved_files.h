#pragma once

#include <set>
#include <string>

namespace stepop {

/// Notices when configs and sources in some folders are saved: YAML files, C++ sources and headers.
class SavedFiles {
 public:
  /// Throws Error when the kernel has no room for another observer (inotify).
  explicit SavedFiles(std::set<std::string> folders);
  ~SavedFiles();
  SavedFiles(const SavedFiles&) = delete;
  SavedFiles& operator=(const SavedFiles&) = delete;

  const std::set<std::string>& folders() const { return folders_; }

  /// The names of the files that were saved since the last call; does not wait. An editor that
  /// writes a file in several parts has time to finish.
  std::set<std::string> saved();

 private:
  std::set<std::string> folders_;
  int file_;
};

}  // namespace stepop
