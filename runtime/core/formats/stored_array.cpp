#include "runtime/core/formats/stored_array.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/system/mapped_file.h"

namespace stepop {
namespace {

class MappedSource : public StoredArray::Source {
 public:
  explicit MappedSource(const std::string& path) : file_(path) {}
  std::string_view bytes() const override { return file_.bytes(); }
  void check() const override { file_.check_size(); }

 private:
  MappedFile file_;
};

class MemorySource : public StoredArray::Source {
 public:
  explicit MemorySource(std::string bytes) : bytes_(std::move(bytes)) {}
  std::string_view bytes() const override { return bytes_; }

 private:
  std::string bytes_;
};

/// NumPy's names of types, and their short forms.
const std::map<std::string, std::string>& names_of_types() {
  static const std::map<std::string, std::string> names = {
      {"bool", "b1"},        {"int8", "i1"},    {"int16", "i2"}, {"int32", "i4"},
      {"int64", "i8"},       {"int", "i8"},     {"uint8", "u1"}, {"uint16", "u2"},
      {"uint32", "u4"},      {"uint64", "u8"},  {"uint", "u8"},  {"float16", "f2"},
      {"float32", "f4"},     {"float64", "f8"}, {"float", "f8"}, {"complex64", "c8"},
      {"complex128", "c16"}, {"complex", "c16"}};
  return names;
}

/// The advice for a type that no tensor can hold.
std::string remedy_of(char kind) {
  if (kind == 'O') {
    return "Python objects, which are pickled and could run any code; store numbers or texts: "
           "np.save(path, np.array(list_of_equal_lengths)), or np.array(texts, dtype=str)";
  }
  if (kind == 'M' || kind == 'm') return "times; store numbers: array.astype('int64')";
  if (kind == 'V') return "records; store each field as an array of its own: array['field']";
  return "a type that no tensor has; convert it: array.astype('float32')";
}

std::string utf8_of(uint32_t character) {
  constexpr uint32_t kReplacement = 0xfffd;
  if (character > 0x10ffff || (character >= 0xd800 && character < 0xe000)) character = kReplacement;
  const auto tail = [&](int shift) {
    return static_cast<char>(0x80 | ((character >> shift) & 0x3f));
  };
  if (character < 0x80) return {static_cast<char>(character)};
  if (character < 0x800) return {static_cast<char>(0xc0 | (character >> 6)), tail(0)};
  if (character < 0x10000) {
    return {static_cast<char>(0xe0 | (character >> 12)), tail(6), tail(0)};
  }
  return {static_cast<char>(0xf0 | (character >> 18)), tail(12), tail(6), tail(0)};
}

void reverse_elements(char* bytes, size_t size, size_t element) {
  for (size_t i = 0; i + element <= size; i += element) {
    std::reverse(bytes + i, bytes + i + element);
  }
}

/// Converts unsigned numbers to a wider signed type that tensors have.
template <class From, class To>
void widen(const std::vector<char>& stored, To* target) {
  for (size_t i = 0; i * sizeof(From) < stored.size(); ++i) {
    From value = 0;
    std::memcpy(&value, stored.data() + i * sizeof(From), sizeof(From));
    if constexpr (sizeof(From) == sizeof(To)) {
      if (value > static_cast<From>(std::numeric_limits<To>::max())) {
        throw Error(fmt::format("holds {}, which no int64 can be", value));
      }
    }
    target[i] = static_cast<To>(value);
  }
}

}  // namespace

at::ScalarType ElementType::tensor_type() const {
  switch (kind) {
    case 'b':
      return at::kBool;
    case 'i':
      return size == 1 ? at::kChar : size == 2 ? at::kShort : size == 4 ? at::kInt : at::kLong;
    case 'u':
      return size == 1 ? at::kByte : size == 2 ? at::kInt : at::kLong;
    case 'c':
      return size == 8 ? at::kComplexFloat : at::kComplexDouble;
    default:
      return size == 2 ? at::kHalf : size == 4 ? at::kFloat : at::kDouble;
  }
}

std::string ElementType::describe() const {
  if (is_text()) {
    return fmt::format("text of {} characters", kind == 'U' ? size / 4 : size);
  }
  if (kind == 'b') return "bool";
  const char* name = kind == 'i' ? "int" : kind == 'u' ? "uint" : kind == 'c' ? "complex" : "float";
  return fmt::format("{}{}", name, 8 * size);
}

ElementType parse_element_type(const std::string& text) {
  const auto name = names_of_types().find(text);
  std::string_view rest = name != names_of_types().end() ? std::string_view(name->second) : text;
  ElementType type;
  if (!rest.empty() && std::string_view("<>|=").find(rest[0]) != std::string_view::npos) {
    type.is_reversed = rest[0] == '>';
    rest.remove_prefix(1);
  }
  type.kind = rest.empty() ? '?' : rest[0];
  int64_t size = 0;
  for (const char c : rest.substr(std::min<size_t>(rest.size(), 1))) {
    const bool is_digit = c >= '0' && c <= '9';
    size = is_digit && size < 100'000'000 ? 10 * size + (c - '0') : -1;
    if (size < 0) break;
  }
  const auto is_one_of = [&](std::initializer_list<int64_t> sizes) {
    return std::find(sizes.begin(), sizes.end(), size) != sizes.end();
  };
  const char kind = type.kind;
  const bool is_known =
      (kind == 'b' && size == 1) || ((kind == 'i' || kind == 'u') && is_one_of({1, 2, 4, 8})) ||
      (kind == 'f' && is_one_of({2, 4, 8})) || (kind == 'c' && is_one_of({8, 16})) ||
      ((kind == 'S' || kind == 'U') && size > 0);
  if (!is_known) {
    throw Error(
        fmt::format("its elements are \"{}\": {}", text, remedy_of(text == "object" ? 'O' : kind)));
  }
  type.size = kind == 'U' ? 4 * size : size;
  if (type.size == 1 || kind == 'S') type.is_reversed = false;
  return type;
}

StoredArray::StoredArray(std::shared_ptr<const Source> source, std::string name, ElementType type,
                         std::vector<int64_t> shape, size_t begin, bool is_fortran)
    : source_(std::move(source)),
      name_(std::move(name)),
      type_(type),
      shape_(std::move(shape)),
      begin_(begin),
      is_fortran_(is_fortran && shape_.size() > 1) {
  int64_t size = type_.size;
  bool fits = true;
  for (const int64_t length : shape_) {
    fits =
        fits && length >= 0 && !__builtin_mul_overflow(size, std::max<int64_t>(length, 1), &size);
  }
  const size_t available = source_->bytes().size() - std::min(begin_, source_->bytes().size());
  const bool is_empty = std::find(shape_.begin(), shape_.end(), 0) != shape_.end();
  if (!fits || (!is_empty && static_cast<size_t>(size) > available)) {
    throw Error(fmt::format("{}: cut short: {} needs {}, found {} bytes", name_, describe(),
                            fits ? with_thousands(size) + " bytes" : "more bytes than there can be",
                            with_thousands(static_cast<int64_t>(available))));
  }
  for (size_t i = 1; i < shape_.size(); ++i) row_elements_ *= shape_[i];
}

int64_t StoredArray::bytes() const { return rows() * row_elements_ * type_.size; }

std::string StoredArray::describe() const {
  return fmt::format("{} [{}]", type_.describe(), fmt::join(shape_, ", "));
}

void StoredArray::check_row(int64_t row) const {
  if (row >= 0 && row < rows()) return;
  throw Error(fmt::format("{}: there is no row {}: it has {}", name_, row, rows()));
}

/// Copies the stored elements of a row in C order.
void StoredArray::copy_row(int64_t row, char* target) const {
  const char* data = source_->bytes().data() + begin_;
  const auto element = static_cast<size_t>(type_.size);
  const auto elements = static_cast<size_t>(row_elements_);
  if (!is_fortran_) {
    std::memcpy(target, data + static_cast<size_t>(row) * elements * element, elements * element);
    return;
  }
  // The first index moves fastest in the file, the last index in `target`.
  std::vector<int64_t> index(shape_.size(), 0);
  std::vector<size_t> steps(shape_.size(), 1);
  for (size_t d = 1; d < shape_.size(); ++d) {
    steps[d] = steps[d - 1] * static_cast<size_t>(shape_[d - 1]);
  }
  for (size_t i = 0; i < elements; ++i) {
    auto place = static_cast<size_t>(row);
    for (size_t d = 1; d < shape_.size(); ++d) place += steps[d] * static_cast<size_t>(index[d]);
    std::memcpy(target + i * element, data + place * element, element);
    for (size_t d = shape_.size() - 1; d > 0 && ++index[d] == shape_[d]; --d) index[d] = 0;
  }
}

at::Tensor StoredArray::gather(std::span<const int64_t> rows) const {
  if (type_.is_text()) {
    throw Error(fmt::format("{}: expected numbers, found {}", name_, describe()));
  }
  std::vector<int64_t> shape = shape_;
  if (shape.empty()) shape.push_back(1);
  shape[0] = static_cast<int64_t>(rows.size());
  source_->check();
  at::Tensor result = at::empty(shape, type_.tensor_type());
  const bool is_widened = type_.kind == 'u' && type_.size > 1;
  const auto row_bytes = static_cast<size_t>(row_elements_ * type_.size);
  std::vector<char> stored(is_widened ? row_bytes * rows.size() : 0);
  char* target = is_widened ? stored.data() : static_cast<char*>(result.mutable_data_ptr());
  char* next = target;
  for (const int64_t row : rows) {
    check_row(row);
    copy_row(row, next);
    next += row_bytes;
  }
  const size_t bytes = row_bytes * rows.size();
  const bool is_big = std::endian::native == std::endian::big;
  if (type_.is_reversed != is_big) {
    const size_t parts = type_.kind == 'c' ? 2 : 1;
    reverse_elements(target, bytes, static_cast<size_t>(type_.size) / parts);
  }
  if (type_.kind == 'b') {
    for (size_t i = 0; i < bytes; ++i) target[i] = target[i] != 0 ? 1 : 0;
  }
  if (!is_widened) return result;
  try {
    if (type_.size == 2) {
      widen<uint16_t>(stored, result.mutable_data_ptr<int32_t>());
    } else if (type_.size == 4) {
      widen<uint32_t>(stored, result.mutable_data_ptr<int64_t>());
    } else {
      widen<uint64_t>(stored, result.mutable_data_ptr<int64_t>());
    }
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", name_, error.what()));
  }
  return result;
}

at::Tensor StoredArray::all() const {
  if (bytes() == 0) return at::empty(shape_, type_.tensor_type());  // the number of rows may be any
  std::vector<int64_t> indices(static_cast<size_t>(rows()));
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int64_t>(i);
  return gather(indices).view(shape_);
}

std::vector<std::string> StoredArray::gather_texts(std::span<const int64_t> rows) const {
  if (!type_.is_text() || shape_.size() > 1) {
    throw Error(fmt::format("{}: expected texts [N], found {}", name_, describe()));
  }
  source_->check();
  std::vector<char> stored(static_cast<size_t>(type_.size));
  std::vector<std::string> texts;
  for (const int64_t row : rows) {
    check_row(row);
    copy_row(row, stored.data());
    std::string& text = texts.emplace_back();
    if (type_.kind == 'S') {
      text.assign(stored.data(), stored.size());
    } else {
      const bool is_big = std::endian::native == std::endian::big;
      if (type_.is_reversed != is_big) reverse_elements(stored.data(), stored.size(), 4);
      for (size_t i = 0; i < stored.size(); i += 4) {
        uint32_t character = 0;
        std::memcpy(&character, stored.data() + i, 4);
        text += utf8_of(character);
      }
    }
    text.erase(text.find_last_not_of('\0') + 1);
  }
  return texts;
}

std::shared_ptr<const StoredArray::Source> map_source(const std::string& path) {
  return std::make_shared<MappedSource>(path);
}

std::shared_ptr<const StoredArray::Source> memory_source(std::string bytes) {
  return std::make_shared<MemorySource>(std::move(bytes));
}

}  // namespace stepop
