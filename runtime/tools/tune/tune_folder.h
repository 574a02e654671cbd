#pragma once

#include <string>

#include "runtime/core/system/file_calls.h"

namespace stepop {

/// A folder for what trainings that are measured read and write, in $TMPDIR or /tmp. It is removed
/// with this object, and by a shell that waits for that when this process is killed.
class TuneFolder {
 public:
  /// Throws Error when it cannot be made.
  TuneFolder();
  ~TuneFolder();
  TuneFolder(const TuneFolder&) = delete;
  TuneFolder& operator=(const TuneFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  OpenFile alive_;  ///< Closed with this process, however that ends.
  int shell_ = 0;
};

}  // namespace stepop
