#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/core/base/error.h"
#include "runtime/core/formats/byte_input.h"

namespace stepop {

/// The damage of an archive, without the archive's name.
class TarDamage : public Error {
 public:
  TarDamage(const std::string& what, bool is_cut) : Error(what), is_cut_(is_cut) {}
  /// Whether the archive ends too early, so that nothing follows the damage.
  bool is_cut() const { return is_cut_; }

 private:
  bool is_cut_;
};

/// A file in an archive.
struct TarMember {
  std::string name;
  uint64_t size = 0;     ///< The size of the content, in bytes.
  uint64_t begin = 0;    ///< The position of the member's first header in the archive.
  bool is_link = false;  ///< The content is another member's, or outside the archive.
};

/// Reads a tar archive from its beginning, in the formats of POSIX (ustar and pax) and GNU, with
/// long names. Folders, devices, owners and times are ignored. Sparse files are refused. Memory is
/// bounded, whatever a header claims.
class TarReader {
 public:
  /// `input` must outlive the reader and be at a header; `offset` is the number of bytes before it.
  explicit TarReader(ByteInput& input, uint64_t offset = 0) : input_(input), offset_(offset) {}

  /// The next file; nothing at the end of the archive. Skips the unread content of the last file.
  /// Throws TarDamage, and the errors of `input`.
  std::optional<TarMember> next();

  /// The content of the member that `next` returned. Throws TarDamage when the content is cut
  /// short, or is larger than `most` bytes; after the latter, `next` can be called again.
  std::string content(uint64_t most);

  /// Looks for the next header, after damage that is no cut. Returns false when there is none.
  bool find_header();

 private:
  struct Header;

  bool read_block(char* block);
  std::string read_text(uint64_t size, const char* what);
  void pass(uint64_t bytes);
  void take_pax(const std::string& text, bool is_global);

  ByteInput& input_;
  uint64_t offset_;
  uint64_t left_ = 0;     ///< The unread bytes of the member's content and padding.
  uint64_t padding_ = 0;  ///< The padding of the member's content.
  std::string found_;     ///< The header that `find_header` found.
  // The name and size that preceding headers give for the member.
  std::string long_name_;
  std::optional<uint64_t> long_size_;
};

}  // namespace stepop
