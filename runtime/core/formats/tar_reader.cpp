#include "runtime/core/formats/tar_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

#include "runtime/core/base/number_text.h"

namespace stepop {
namespace {

constexpr size_t kBlock = 512;
/// The limit for a long name, and for the text of a pax header.
constexpr uint64_t kMostText = 1 << 20;
/// No disk holds more; sums of such sizes do not overflow.
constexpr uint64_t kMostBytes = uint64_t{1} << 60;

/// A field of a header, by its place in the block.
struct Field {
  size_t begin;
  size_t size;
};
constexpr Field kName{0, 100};
constexpr Field kSize{124, 12};
constexpr Field kSum{148, 8};
constexpr size_t kType = 156;
constexpr Field kTarMagic{257, 8};
constexpr Field kPrefix{345, 155};

std::string_view text_of(const char* block, Field field) {
  const std::string_view text(block + field.begin, field.size);
  return text.substr(0, text.find('\0'));
}

/// Parses octal digits among spaces and zeros, or GNU's binary form for large numbers.
std::optional<uint64_t> number_of(const char* block, Field field) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(block + field.begin);
  constexpr unsigned char kBinary = 0x80;
  uint64_t number = 0;
  if (bytes[0] == kBinary) {
    for (size_t i = 1; i < field.size; ++i) {
      if (number > kMostBytes) return std::nullopt;
      number = number * 256 + bytes[i];
    }
    return number > kMostBytes ? std::nullopt : std::optional(number);
  }
  size_t i = 0;
  while (i < field.size && bytes[i] == ' ') ++i;
  for (; i < field.size && bytes[i] >= '0' && bytes[i] <= '7'; ++i)
    number = number * 8 + bytes[i] - '0';
  for (; i < field.size; ++i) {
    if (bytes[i] != ' ' && bytes[i] != '\0') return std::nullopt;
  }
  return number;
}

bool is_zero(const char* block) {
  return std::all_of(block, block + kBlock, [](char c) { return c == '\0'; });
}

/// Whether the header's checksum is right. Old programs added signed bytes.
bool has_right_sum(const char* block) {
  const auto given = number_of(block, kSum);
  if (!given) return false;
  int64_t sum = 0;
  int64_t signed_sum = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const char c = i >= kSum.begin && i < kSum.begin + kSum.size ? ' ' : block[i];
    sum += static_cast<unsigned char>(c);
    signed_sum += static_cast<signed char>(c);
  }
  return static_cast<int64_t>(*given) == sum || static_cast<int64_t>(*given) == signed_sum;
}

/// Whether the block has the magic of POSIX, whose headers have a prefix of the name.
bool is_posix(const char* block) { return text_of(block, kTarMagic) == "ustar"; }

bool is_header(const char* block) {
  return std::string_view(block + kTarMagic.begin, kTarMagic.size).starts_with("ustar") &&
         has_right_sum(block);
}

TarDamage cut(const std::string& where) {
  return {fmt::format("the archive is cut short: it ends {}", where), true};
}

}  // namespace

/// The contents of a header block.
struct TarReader::Header {
  char type = '\0';
  uint64_t size = 0;
  std::string name;
};

/// Returns false at the end of the input.
bool TarReader::read_block(char* block) {
  if (!found_.empty()) {
    std::copy(found_.begin(), found_.end(), block);
    found_.clear();
    return true;
  }
  const size_t count = input_.read(block, kBlock);
  offset_ += count;
  if (count == 0) return false;
  if (count < kBlock) throw cut("in the middle of a header");
  return true;
}

void TarReader::pass(uint64_t bytes) {
  const uint64_t count = input_.skip(bytes);
  offset_ += count;
  if (count < bytes) throw cut("in the middle of a member");
}

std::string TarReader::read_text(uint64_t size, const char* what) {
  if (size > kMostText) {
    throw TarDamage(fmt::format("{} of {}", what, size_text(static_cast<double>(size))), false);
  }
  std::string text(static_cast<size_t>(size), '\0');
  const size_t count = input_.read(text.data(), text.size());
  offset_ += count;
  if (count < text.size()) throw cut("in the middle of a header");
  pass((kBlock - size % kBlock) % kBlock);
  return text;
}

/// Parses lines `<length> <key>=<value>\n`, where the length counts the whole line.
void TarReader::take_pax(const std::string& text, bool is_global) {
  std::string_view rest = text;
  while (!rest.empty() && rest[0] != '\0') {
    size_t length = 0;
    const auto [end, failed] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
    const auto digits = static_cast<size_t>(end - rest.data());
    const bool fits = failed == std::errc() && length > digits + 1 && length <= rest.size() &&
                      rest[digits] == ' ' && rest[length - 1] == '\n';
    if (!fits) throw TarDamage("a pax header that breaks the format", false);
    const std::string_view line = rest.substr(digits + 1, length - digits - 2);
    rest.remove_prefix(length);
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) {
      throw TarDamage("a pax header that breaks the format", false);
    }
    const std::string_view key = line.substr(0, equals);
    const std::string_view value = line.substr(equals + 1);
    if (key.starts_with("GNU.sparse")) {
      throw TarDamage("a sparse file, which cannot be read here; pack it without tar's --sparse",
                      false);
    }
    if (is_global) continue;
    if (key == "path") long_name_ = value;
    if (key != "size") continue;
    uint64_t size = 0;
    const auto [stop, status] = std::from_chars(value.data(), value.data() + value.size(), size);
    if (status != std::errc() || stop != value.data() + value.size() || size > kMostBytes) {
      throw TarDamage(fmt::format("a pax header with the size \"{}\"", value), false);
    }
    long_size_ = size;
  }
}

std::optional<TarMember> TarReader::next() {
  if (left_ + padding_ > 0) pass(std::exchange(left_, 0) + std::exchange(padding_, 0));
  std::optional<uint64_t> begin;
  long_name_.clear();
  long_size_.reset();
  std::array<char, kBlock> block{};
  while (true) {
    const uint64_t here = found_.empty() ? offset_ : offset_ - kBlock;
    if (!read_block(block.data())) throw cut("without the zeros that end one");
    if (is_zero(block.data())) return std::nullopt;
    if (!has_right_sum(block.data())) {
      throw TarDamage(fmt::format("damaged at byte {}: no header of a tar archive is there", here),
                      false);
    }
    if (!begin) begin = here;
    Header header;
    header.type = block[kType];
    const auto size = number_of(block.data(), kSize);
    if (!size)
      throw TarDamage(fmt::format("damaged at byte {}: a size that is not a number", here), false);
    header.size = *size;
    header.name = text_of(block.data(), kName);
    const std::string_view prefix = is_posix(block.data()) ? text_of(block.data(), kPrefix) : "";
    if (!prefix.empty()) header.name = fmt::format("{}/{}", prefix, header.name);
    switch (header.type) {
      case 'L':
        long_name_ = read_text(header.size, "a name");
        long_name_.resize(std::min(long_name_.find('\0'), long_name_.size()));
        continue;
      case 'K':  // the target of a link
        read_text(header.size, "a name");
        continue;
      case 'x':
      case 'g':
        take_pax(read_text(header.size, "a pax header"), header.type == 'g');
        continue;
      case 'S':
        throw TarDamage(
            fmt::format("{}: a sparse file, which cannot be read here; pack it without tar's "
                        "--sparse",
                        header.name),
            false);
      default:
        break;
    }
    TarMember member{.name = long_name_.empty() ? header.name : long_name_,
                     .size = long_size_.value_or(header.size),
                     .begin = *begin};
    const bool is_file = header.type == '0' || header.type == '\0' || header.type == '7';
    member.is_link = header.type == '1' || header.type == '2';
    if (!is_file && !member.is_link && (header.type < '3' || header.type > '6')) {
      throw TarDamage(fmt::format("{}: a member of the unknown type {}", member.name,
                                  static_cast<int>(header.type)),
                      false);
    }
    // A link, a folder and a device have no content, whatever size their header has.
    if (is_file) {
      left_ = member.size;
      padding_ = (kBlock - left_ % kBlock) % kBlock;
      // Old programs mark a folder only by its name.
      if (!member.name.ends_with('/')) return member;
      pass(std::exchange(left_, 0) + std::exchange(padding_, 0));
    }
    if (member.is_link) {
      member.size = 0;
      return member;
    }
    begin.reset();
    long_name_.clear();
    long_size_.reset();
  }
}

std::string TarReader::content(uint64_t most) {
  if (left_ > most) {
    throw TarDamage(
        fmt::format("it has {}, and more than {} are not read",
                    size_text(static_cast<double>(left_)), size_text(static_cast<double>(most))),
        false);
  }
  // A header may claim more than the archive has: memory grows with the bytes that were read.
  constexpr uint64_t kPiece = 1 << 22;
  std::string content;
  while (left_ > 0) {
    const auto piece = static_cast<size_t>(std::min(left_, kPiece));
    const size_t done = content.size();
    content.resize(done + piece);
    const size_t count = input_.read(content.data() + done, piece);
    offset_ += count;
    left_ -= count;
    if (count < piece) throw cut("in the middle of a member");
  }
  pass(std::exchange(padding_, 0));
  return content;
}

bool TarReader::find_header() {
  left_ = padding_ = 0;
  std::array<char, kBlock> block{};
  // Headers begin at multiples of a block.
  const uint64_t beyond = offset_ % kBlock;
  if (beyond > 0 && input_.skip(kBlock - beyond) < kBlock - beyond) return false;
  if (beyond > 0) offset_ += kBlock - beyond;
  while (true) {
    const size_t count = input_.read(block.data(), kBlock);
    offset_ += count;
    if (count < kBlock) return false;
    if (!is_header(block.data())) continue;
    found_.assign(block.data(), kBlock);
    return true;
  }
}

}  // namespace stepop
