#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/core/system/file_calls.h"

namespace stepop {

/// A file whose bytes are read as they are needed (mmap): it may be larger than the memory.
class MappedFile {
 public:
  MappedFile() = default;
  /// Throws Error as open_regular_file does.
  explicit MappedFile(std::string path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  const std::string& path() const { return path_; }

  /// All bytes, which are valid as long as this object. The system ends a process that reads where
  /// the file has been cut off since: call `check_size` before.
  std::string_view bytes() const { return {data_, size_}; }

  /// Throws Error when the file has become shorter since it was opened.
  void check_size() const;

  /// When the file was last changed, in nanoseconds since 1970.
  int64_t time() const;

 private:
  std::string path_;
  OpenFile file_;
  const char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace stepop
