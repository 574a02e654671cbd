#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/core/base/error.h"
#include "runtime/core/formats/byte_input.h"

namespace stepop {

/// What is wrong with an archive, without its name.
class TarDamage : public Error {
 public:
  TarDamage(const std::string& what, bool is_cut) : Error(what), is_cut_(is_cut) {}
  /// Whether the archive ends too early, so that nothing comes behind the damage.
  bool is_cut() const { return is_cut_; }

 private:
  bool is_cut_;
};

/// A file in an archive.
struct TarMember {
  std::string name;
  uint64_t size = 0;     ///< Of its content, in bytes.
  uint64_t begin = 0;    ///< Where its first header begins in the archive.
  bool is_link = false;  ///< Its content is another member's, or none of the archive's.
};

/// Reads a tar archive from its beginning on: of POSIX (ustar and pax) and GNU, with long names.
/// Folders, devices and what a header says of owners and times are passed over. Sparse files are
/// refused. Memory is bounded whatever a header claims.
class TarReader {
 public:
  /// `input` must outlive this and be at a header; `offset` is what lies before it.
  explicit TarReader(ByteInput& input, uint64_t offset = 0) : input_(input), offset_(offset) {}

  /// The next file; nothing at the end of the archive. What was not read of the one before is
  /// passed over. Throws TarDamage, and what `input` throws.
  std::optional<TarMember> next();

  /// The content of the member that `next` gave. Throws TarDamage when it is cut short, or larger
  /// than `most` bytes, after which `next` goes on.
  std::string content(uint64_t most);

  /// After a damage that is no cut: looks for the next header. False when there is none.
  bool find_header();

 private:
  struct Header;

  bool read_block(char* block);
  std::string read_text(uint64_t size, const char* what);
  void pass(uint64_t bytes);
  void take_pax(const std::string& text, bool is_global);

  ByteInput& input_;
  uint64_t offset_;
  uint64_t left_ = 0;     ///< Of the member's content and its padding.
  uint64_t padding_ = 0;  ///< Of the member's content.
  std::string found_;     ///< A header that `find_header` found.
  // What the headers before a member's own say of it.
  std::string long_name_;
  std::optional<uint64_t> long_size_;
};

}  // namespace stepop
