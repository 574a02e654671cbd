#pragma once

#include <string>
#include <vector>

namespace stepop {

/// The user's sources in a run's folder, `code/<time>/`: a folder for each start that trained with
/// other code than the start before. Their places relative to each other are kept, and
/// `sources.json` says where they came from: `{"root": "/home/ada", "files":
/// {"denoiser/denoiser.cpp": "<checksum>"}}`.
class CodeCopy {
 public:
  /// The newest one of the run whose folder is `run`, of those that the start at the time `until`
  /// had when that is given; `is_there()` is false when it has none, or when `run` is empty.
  explicit CodeCopy(const std::string& run, const std::string& until = "");

  bool is_there() const { return !folder_.empty(); }
  /// `<run>/code/<time>`
  const std::string& folder() const { return folder_; }

  /// The copy of the source that lay at `path`, or `path` itself when the run has none.
  std::string find(const std::string& path) const;

  /// Which of the originals are gone, or differ from the copy: `denoiser.cpp changed`, ....
  std::vector<std::string> differences() const;

  /// Copies `files` (absolute paths; those of this copy count as the originals that they were) to
  /// `code/<time>/`, unless the newest copy is the same.
  void save(const std::vector<std::string>& files, const std::string& time) const;

 private:
  struct File {
    std::string name;      ///< Below the root.
    std::string checksum;  ///< Of its content.
  };

  std::string original_of(const std::string& path) const;

  std::string run_;
  std::string folder_;
  std::string root_;
  std::vector<File> files_;
};

}  // namespace stepop
