#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

struct z_stream_s;

namespace stepop {

/// Unpacks deflated data piece by piece, by zlib.
class Inflater {
 public:
  enum class Kind {
    kGzip,     ///< With gzip's header and check sum: one member.
    kDeflate,  ///< The data alone, as ZIP archives have it.
  };

  /// What one call did.
  struct Step {
    size_t taken = 0;         ///< Bytes of the input.
    size_t given = 0;         ///< Bytes of the output.
    bool is_at_end = false;   ///< Of the packed data. What follows it was not taken.
    std::string damage = {};  ///< Why the data is corrupt; empty when it is not.

    /// It waits for more input, or for room.
    bool is_stuck() const { return taken == 0 && given == 0 && !is_at_end; }
  };

  /// Throws Error when there is no memory for it.
  explicit Inflater(Kind kind);

  /// Unpacks as much of `input` as has room in the `size` bytes at `target`.
  Step unpack(std::string_view input, char* target, size_t size);

  /// Begins again, for data that follows.
  void reset();

 private:
  struct End {
    void operator()(z_stream_s* stream) const;
  };

  std::unique_ptr<z_stream_s, End> stream_;
};

}  // namespace stepop
