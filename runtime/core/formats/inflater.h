#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

struct z_stream_s;

namespace stepop {

/// The most bytes that deflate packs into one byte.
inline constexpr size_t kMostInOneByte = 1032;

/// Unpacks deflated data piece by piece with zlib.
class Inflater {
 public:
  enum class Kind {
    kGzip,     ///< One member, with gzip's header and checksum.
    kDeflate,  ///< The data only, as in ZIP archives.
  };

  /// The result of one call.
  struct Step {
    size_t taken = 0;         ///< The number of input bytes that were read.
    size_t given = 0;         ///< The number of output bytes that were written.
    bool is_at_end = false;   ///< Whether the packed data ended; bytes after it were not read.
    std::string damage = {};  ///< Why the data is corrupt; empty if it is not.

    /// Whether the inflater waits for more input, or for more room.
    bool is_stuck() const { return taken == 0 && given == 0 && !is_at_end; }
  };

  /// Throws Error when there is not enough memory.
  explicit Inflater(Kind kind);

  /// Unpacks as much of `input` as fits into the `size` bytes at `target`.
  Step unpack(std::string_view input, char* target, size_t size);

  /// Starts again, for the data that follows.
  void reset();

 private:
  struct End {
    void operator()(z_stream_s* stream) const;
  };

  std::unique_ptr<z_stream_s, End> stream_;
};

}  // namespace stepop
