#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/core/formats/inflater.h"
#include "runtime/core/system/file_calls.h"

namespace stepop {

/// A file that is read from its beginning on, unpacked when it is gzip (of one or several members),
/// as its first two bytes show, not the name. Only what was asked for is unpacked.
///
/// Throws Error with the path when the file cannot be read, is no regular file (one would wait at a
/// pipe, and never come to the end of a device), is cut short or corrupt, and when it unpacks to
/// too much, see is_too_much_unpacked.
class PlainOrGzip {
 public:
  explicit PlainOrGzip(std::string path);

  /// The next `size` bytes, or fewer at the end; returns how many.
  size_t read(char* target, size_t size);

  /// How many bytes the file can have at most, unpacked: gzip packs 1032 : 1.
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
  uint64_t size_ = 0;   ///< Of the file.
  uint64_t given_ = 0;  ///< Bytes that were read, unpacked.
  uint64_t taken_ = 0;  ///< Bytes of the file that were unpacked.
  std::string stored_;  ///< What was read of the file and is not given yet, from `begin_` on.
  size_t begin_ = 0;
  std::optional<Inflater> inflater_;
  bool is_at_end_ = false;
};

/// All bytes of a file, unpacked when they are gzip. Throws Error as PlainOrGzip does.
std::string read_plain_or_gzip(const std::string& path);

}  // namespace stepop
