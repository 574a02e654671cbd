#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/core/formats/inflater.h"
#include "runtime/core/system/file_calls.h"

namespace stepop {

/// A file that is read from its beginning. A gzip file (one or several members), which the first
/// two bytes show and not the name, is unpacked. Bytes are unpacked only when they are read.
///
/// Throws Error with the path when the file cannot be read, is no regular file (a read from a pipe
/// would block, and a device may have no end), is cut short or corrupt, and when it unpacks to too
/// much, see is_too_much_unpacked.
class PlainOrGzip {
 public:
  explicit PlainOrGzip(std::string path);

  /// The next `size` bytes, or fewer at the end; returns their number.
  size_t read(char* target, size_t size);

  /// An upper limit for the unpacked size of the file, in bytes: gzip packs at most 1032 : 1.
  uint64_t most_bytes() const;

  bool is_gzip() const { return inflater_.has_value(); }

 private:
  size_t read_stored(char* target, size_t size);
  void fill();
  void check_size(uint64_t unpacked) const;
  bool has_another_member();
  size_t unpack(char* target, size_t size);

  std::string path_;
  OpenFile file_;
  uint64_t size_ = 0;   ///< The size of the file.
  uint64_t given_ = 0;  ///< The number of unpacked bytes that were returned.
  uint64_t taken_ = 0;  ///< The number of the file's bytes that were unpacked.
  std::string stored_;  ///< Bytes from the file; those from `begin_` on are not returned yet.
  size_t begin_ = 0;
  std::optional<Inflater> inflater_;
  bool is_at_end_ = false;
};

/// All bytes of a file; gzip data is unpacked. Throws the same errors as PlainOrGzip.
std::string read_plain_or_gzip(const std::string& path);

}  // namespace stepop
