#pragma once

#include <string>
#include <vector>

namespace stepop {

/// The user's sources in a run's folder, `code/<time>/`: a folder for each start whose code differs
/// from the preceding start's. The files keep their relative places, and `sources.json` has their
/// origin: `{"root": "/home/ada", "files": {"denoiser/denoiser.cpp": "<checksum>"}}`.
class CodeCopy {
 public:
  /// The newest copy in the run folder `run`, or, with `until`, the newest copy that the start at
  /// this time had. `is_there()` is false when there is no copy, or when `run` is empty.
  explicit CodeCopy(const std::string& run, const std::string& until = "");

  bool is_there() const { return !folder_.empty(); }
  /// `<run>/code/<time>`
  const std::string& folder() const { return folder_; }

  /// The copy of the source whose original is `path`, or `path` itself without a copy.
  std::string find(const std::string& path) const;

  /// The originals that are missing, or differ from the copy: `denoiser.cpp changed`, ....
  std::vector<std::string> differences() const;

  /// Copies `files` (absolute paths; files of this copy count as their originals) to
  /// `code/<time>/`, unless the newest copy is the same.
  void save(const std::vector<std::string>& files, const std::string& time) const;

 private:
  struct File {
    std::string name;      ///< Relative to the root.
    std::string checksum;  ///< The checksum of the content.
  };

  std::string original_of(const std::string& path) const;

  std::string run_;
  std::string folder_;
  std::string root_;
  std::vector<File> files_;
};

}  // namespace stepop
