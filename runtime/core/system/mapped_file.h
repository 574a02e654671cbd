#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/core/system/file_calls.h"

namespace stepop {

/// A file whose bytes are read when they are accessed (mmap): the file may be larger than the
/// memory.
class MappedFile {
 public:
  MappedFile() = default;
  /// Throws the same errors as open_regular_file.
  explicit MappedFile(std::string path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  const std::string& path() const { return path_; }

  /// All bytes, valid as long as this object. If the file was cut meanwhile, the system kills a
  /// process that reads the missing part: call `check_size` first.
  std::string_view bytes() const { return {data_, size_}; }

  /// Throws Error when the file has become shorter since it was opened.
  void check_size() const;

  /// The time of the file's last change, in nanoseconds since 1970.
  int64_t time() const;

 private:
  std::string path_;
  OpenFile file_;
  const char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace stepop
