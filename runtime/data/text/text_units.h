#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepop {

/// The lines or the documents of a text: where each begins, 8 bytes for each. The text must live.
class TextUnits {
 public:
  TextUnits() = default;

  /// The lines, without their ends (\n or \r\n).
  static TextUnits lines(std::string_view text, bool skips_empty);
  /// What stands between separators, each a text that is not empty; documents without a character
  /// are left out.
  static TextUnits documents(std::string_view text, const std::string& separator);

  int64_t size() const { return static_cast<int64_t>(starts_.size()); }
  std::string_view operator[](int64_t index) const;
  /// Where it begins, in bytes.
  size_t start(int64_t index) const { return starts_[static_cast<size_t>(index)]; }

 private:
  std::string_view text_;
  std::string separator_;
  bool is_of_lines_ = false;
  std::vector<size_t> starts_;
};

/// Cuts a text into pieces that are encoded by themselves: behind each separator, or without one
/// behind each run of line ends. Without a separator no piece has more than a megabyte.
class TextPieces {
 public:
  TextPieces(std::string_view text, std::string separator)
      : text_(text), separator_(std::move(separator)) {}

  /// Where the piece that begins at `from` ends, separator or line ends included.
  size_t end_of_piece(size_t from) const;
  /// Parts of whole pieces, of a megabyte or somewhat more each: where each ends.
  std::vector<size_t> block_ends() const;

 private:
  std::string_view text_;
  std::string separator_;
};

}  // namespace stepop
