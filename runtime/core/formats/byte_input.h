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

/// The bytes exist but are wrong: gzip data that is corrupt or cut short.
class DamagedInput : public Error {
 public:
  using Error::Error;
};

/// Bytes that are read once, from the first to the last: from a file or a program's output.
class ByteInput {
 public:
  virtual ~ByteInput() = default;

  /// The next `size` bytes, or fewer at the end; returns their number. Throws Error when they
  /// cannot be read.
  virtual size_t read(char* target, size_t size) = 0;

  /// Skips bytes in place of reading them; returns their number.
  virtual uint64_t skip(uint64_t size);
};

/// A file. Throws Error with the path when it cannot be read, or is no regular file.
class FileInput : public ByteInput {
 public:
  explicit FileInput(std::string path);
  size_t read(char* target, size_t size) override;
  uint64_t skip(uint64_t size) override;
  /// Seeks to `offset`, or to the end of a shorter file.
  void seek(uint64_t offset);

 private:
  void fill();

  std::string path_;
  OpenFile file_;
  uint64_t size_ = 0;      ///< The size of the file.
  uint64_t position_ = 0;  ///< The file offset of the first byte after `buffer_`.
  std::string buffer_;
  size_t begin_ = 0;  ///< The start of the unread bytes in `buffer_`.
};

/// The bytes of `input`, unpacked (all gzip members) if they begin like gzip. Bytes are unpacked
/// only when they are read. Throws DamagedInput for gzip data that is corrupt or cut short.
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
  std::string stored_;  ///< Bytes from `input_`; those from `begin_` on are not returned yet.
  size_t begin_ = 0;
  bool is_at_end_ = false;  ///< Whether the gzip data has ended.
  std::optional<Inflater> inflater_;
};

}  // namespace stepop
