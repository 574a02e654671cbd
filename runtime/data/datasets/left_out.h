#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace stepop {

/// The files below a folder that a dataset does not read.
class LeftOut {
 public:
  /// `path` is relative to the dataset's folder.
  void add(std::string path) { paths_.push_back(std::move(path)); }

  /// Forgets the files for which `is_read` is true, as they are read in another way.
  template <class Predicate>
  void forget(const Predicate& is_read) {
    std::erase_if(paths_, is_read);
  }

  /// A warning with the number of files by folder and ending, for a dataset that reads `taken`
  /// files of `folder`: `warning: photos: 3 of 8 files left out: in cat 1 .bmp, 1 .webp; in dog 1
  /// .gif`. Empty when no file is left out.
  std::string notice(const std::string& folder, int64_t taken) const;

 private:
  std::vector<std::string> paths_;
};

}  // namespace stepop
