#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime/core/base/error.h"
#include "runtime/core/formats/inflater.h"
#include "runtime/core/system/file_calls.h"

namespace stepop {

/// Bytes that are there and wrong: gzip data that is corrupt or cut short.
class DamagedInput : public Error {
 public:
  using Error::Error;
};

/// Bytes that are read once, from the first to the last: of a file, of a program's output.
class ByteInput {
 public:
  virtual ~ByteInput() = default;

  /// The next `size` bytes, or fewer at the end; returns how many. Throws Error when they cannot be
  /// read.
  virtual size_t read(char* target, size_t size) = 0;

  /// Passes over bytes as `read` would; returns how many.
  virtual uint64_t skip(uint64_t size);
};

/// A file. Throws Error with the path when it cannot be read, or is no regular file.
class FileInput : public ByteInput {
 public:
  explicit FileInput(std::string path);
  size_t read(char* target, size_t size) override;
  uint64_t skip(uint64_t size) override;
  /// Goes there, or to the end of a file that is shorter.
  void seek(uint64_t offset);

 private:
  void fill();

  std::string path_;
  OpenFile file_;
  uint64_t size_ = 0;      ///< Of the file.
  uint64_t position_ = 0;  ///< Of the first byte that is not in `buffer_`.
  std::string buffer_;
  size_t begin_ = 0;  ///< Of what was not read yet in `buffer_`.
};

/// What `input` holds, unpacked when it begins as gzip does; of several members all. Only what is
/// asked for is unpacked. Throws DamagedInput for gzip data that is corrupt or cut short.
class UnpackedInput : public ByteInput {
 public:
  explicit UnpackedInput(std::unique_ptr<ByteInput> input);
  size_t read(char* target, size_t size) override;
  uint64_t skip(uint64_t size) override;
  bool is_gzip() const { return inflater_.has_value(); }

 private:
  void fill();
  size_t take(char* target, size_t size);

  std::unique_ptr<ByteInput> input_;
  std::string stored_;  ///< What was read of `input_` and is not given yet, from `begin_` on.
  size_t begin_ = 0;
  bool is_at_end_ = false;  ///< Of the gzip data.
  std::optional<Inflater> inflater_;
};

}  // namespace stepop
