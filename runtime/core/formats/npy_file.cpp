#include "runtime/core/formats/npy_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/formats/zip_file.h"

namespace stepop {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr size_t kLongestHead = 1 << 20;
constexpr size_t kMostNpyDimensions = 64;

/// The contents of the head, a Python dict:
/// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
struct NpyHead {
  std::string descr;
  bool is_fortran = false;
  std::vector<int64_t> shape;
};

class NpyHeadParser {
 public:
  explicit NpyHeadParser(std::string_view text) : text_(text) {}

  NpyHead parse() {
    NpyHead head;
    bool has_descr = false;
    bool has_shape = false;
    expect('{');
    while (!take('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        if (peek() == '[') {
          throw Error(
              "its elements are records; store each field as an array of its own: "
              "array['field']");
        }
        head.descr = string();
        has_descr = true;
      } else if (key == "fortran_order") {
        head.is_fortran = boolean();
      } else if (key == "shape") {
        head.shape = tuple();
        has_shape = true;
      } else {
        fail();
      }
      if (!take(',') && peek() != '}') fail();
    }
    if (!has_descr || !has_shape) fail();
    return head;
  }

 private:
  [[noreturn]] void fail() const {
    throw Error(
        "its header does not describe an array, {'descr': ..., 'fortran_order': ..., "
        "'shape': ...}");
  }

  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c || c == '\0') return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail();
  }

  std::string string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail();
    const size_t end = text_.find(quote, ++at_);
    if (end == std::string_view::npos) fail();
    const std::string value(text_.substr(at_, end - at_));
    at_ = end + 1;
    return value;
  }

  bool boolean() {
    peek();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return value;
    }
    fail();
  }

  std::vector<int64_t> tuple() {
    std::vector<int64_t> numbers;
    expect('(');
    while (!take(')')) {
      int64_t number = 0;
      const char first = peek();
      if (first < '0' || first > '9') fail();
      for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, text_[at_] - '0', &number)) {
          fail();
        }
      }
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote this suffix
      numbers.push_back(number);
      if (!take(',') && peek() != ')') fail();
      if (numbers.size() > kMostNpyDimensions) fail();
    }
    return numbers;
  }

  std::string_view text_;
  size_t at_ = 0;
};

/// The array in the `.npy` file that begins at `begin` of the source and has `size` bytes.
StoredArray array_in(const std::shared_ptr<const StoredArray::Source>& source, size_t begin,
                     size_t size, const std::string& name) {
  const std::string_view file = source->bytes().substr(begin, size);
  if (!is_npy(file)) {
    throw Error(fmt::format("{}: expected an array of NumPy, which begins with \\x93NUMPY{}", name,
                            file.empty()             ? "; the file is empty"
                            : file.starts_with("PK") ? "; this is a ZIP archive: name it .npz"
                                                     : ""));
  }
  const auto byte = [&](size_t at) {
    return at < file.size() ? static_cast<size_t>(static_cast<unsigned char>(file[at])) : 0;
  };
  const size_t version = byte(6);
  if (version < 1 || version > 3) {
    throw Error(fmt::format("{}: version {} of NumPy's format is unknown; there are 1 to 3", name,
                            version));
  }
  const size_t start = version == 1 ? 10 : 12;
  const size_t length =
      byte(8) | byte(9) << 8 | (version == 1 ? 0 : byte(10) << 16 | byte(11) << 24);
  if (length > kLongestHead || start + length > file.size()) {
    throw Error(fmt::format("{}: cut short or damaged: its header has {} bytes, the file {}", name,
                            length, file.size()));
  }
  try {
    const NpyHead head = NpyHeadParser(file.substr(start, length)).parse();
    const ElementType type = parse_element_type(head.descr);
    StoredArray array(source, name, type, head.shape, begin + start + length, head.is_fortran);
    // In an archive, the bytes after the file do not belong to the array.
    if (static_cast<size_t>(array.bytes()) > size - start - length) {
      throw Error(fmt::format("{}: cut short: {} needs {} bytes, found {}", name, array.describe(),
                              array.bytes(), size - start - length));
    }
    return array;
  } catch (const Error& error) {
    const std::string text = error.what();
    throw Error(text.starts_with(name) ? text : fmt::format("{}: {}", name, text));
  }
}

}  // namespace

bool is_npy(std::string_view bytes) { return bytes.starts_with(kNpyMagic); }

StoredArray open_npy(const std::string& path) {
  const auto source = map_source(path);
  return array_in(source, 0, source->bytes().size(), path);
}

StoredArray parse_npy(std::string bytes, const std::string& name) {
  const auto source = memory_source(std::move(bytes));
  return array_in(source, 0, source->bytes().size(), name);
}

std::map<std::string, StoredArray> open_npz(const std::string& path) {
  const auto source = map_source(path);
  std::map<std::string, StoredArray> arrays;
  for (const ZipEntry& entry : list_zip(source->bytes(), path)) {
    std::string name = entry.name;
    if (!name.ends_with(".npy")) continue;
    name.erase(name.size() - 4);
    const std::string where = fmt::format("{}: array \"{}\"", path, name);
    if (entry.is_stored) {
      check_zip_entry(source->bytes(), entry, where);
      arrays.emplace(name, array_in(source, entry.begin, entry.size, where));
    } else {
      arrays.emplace(name, parse_npy(unpack_zip_entry(source->bytes(), entry, where), where));
    }
  }
  return arrays;
}

std::string npy_head(const std::string& descr, const std::vector<int64_t>& shape) {
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                 descr, fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  constexpr size_t kAlignment = 64;
  constexpr size_t kStart = 10;
  text.append(kAlignment - 1 - (kStart + text.size()) % kAlignment, ' ');
  text += '\n';
  std::string head(kNpyMagic);
  head += {'\1', '\0', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return head + text;
}

}  // namespace stepop
