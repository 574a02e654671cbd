#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepop {

/// The lines or documents of a text. Only their beginnings are stored, 8 bytes each. The text must
/// outlive this object.
class TextUnits {
 public:
  TextUnits() = default;

  /// The lines, without their ends (\n or \r\n).
  static TextUnits lines(std::string_view text, bool skips_empty);
  /// The documents between separators. The separator must not be empty; empty documents are left
  /// out.
  static TextUnits documents(std::string_view text, const std::string& separator);

  int64_t size() const { return static_cast<int64_t>(starts_.size()); }
  std::string_view operator[](int64_t index) const;
  /// The offset of a line or document, in bytes.
  size_t start(int64_t index) const { return starts_[static_cast<size_t>(index)]; }

 private:
  std::string_view text_;
  std::string separator_;
  bool is_of_lines_ = false;
  std::vector<size_t> starts_;
};

/// Cuts a text into pieces that are encoded separately: after each separator or, without a
/// separator, after each run of line ends. Without a separator, no piece has more than a megabyte.
class TextPieces {
 public:
  TextPieces(std::string_view text, std::string separator)
      : text_(text), separator_(std::move(separator)) {}

  /// The end of the piece that begins at `from`, with its separator or line ends.
  size_t end_of_piece(size_t from) const;
  /// The ends of blocks of whole pieces; each block has a megabyte or slightly more.
  std::vector<size_t> block_ends() const;

 private:
  std::string_view text_;
  std::string separator_;
};

}  // namespace stepop
