#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepop {

/// A NumPy dtype, as far as tensors and texts can hold it.
struct ElementType {
  char kind = 'f';           ///< NumPy's letter: b, i, u, f, c, S (bytes) or U (UTF-32).
  int64_t size = 4;          ///< In bytes.
  bool is_reversed = false;  ///< Whether the most significant byte comes first.

  bool is_text() const { return kind == 'S' || kind == 'U'; }
  /// The type of the tensors that are read. Tensors have no unsigned numbers of more than a byte:
  /// uint16 becomes int32, uint32 and uint64 become int64.
  at::ScalarType tensor_type() const;
  /// `int64`, `float32`, `text of 12 characters`
  std::string describe() const;
};

/// Parses NumPy's `<f4`, `|b1`, `>i8`, `<U12`, or a name, `int64`, `float32`, `bool`. Throws Error
/// with advice for types that no tensor can hold: Python objects, records, times.
ElementType parse_element_type(const std::string& text);

/// An array in the bytes of a file, which may be mapped; elements are read on request. Several
/// threads may call all const functions at once.
class StoredArray {
 public:
  /// The bytes with the array, and their origin.
  class Source {
   public:
    virtual ~Source() = default;
    virtual std::string_view bytes() const = 0;
    /// Throws Error when the bytes can no longer be read.
    virtual void check() const {}
  };

  /// The array begins at `begin` of the source; messages begin with `name`. Throws Error when the
  /// source has too few bytes for the array.
  StoredArray(std::shared_ptr<const Source> source, std::string name, ElementType type,
              std::vector<int64_t> shape, size_t begin = 0, bool is_fortran = false);

  const std::string& name() const { return name_; }
  const ElementType& type() const { return type_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  /// The first dimension; 1 for a number without dimensions.
  int64_t rows() const { return shape_.empty() ? 1 : shape_[0]; }
  /// The size of all elements as stored.
  int64_t bytes() const;
  /// `float32 [100, 3]`
  std::string describe() const;

  /// The rows, [rows.size(), ...], of an array of numbers. Throws Error for a missing row, and for
  /// a number that does not fit its tensor.
  at::Tensor gather(std::span<const int64_t> rows) const;
  /// The whole array, in its shape.
  at::Tensor all() const;
  /// The texts in the rows of an array of texts [N], in UTF-8, without trailing zeros.
  std::vector<std::string> gather_texts(std::span<const int64_t> rows) const;

 private:
  void check_row(int64_t row) const;
  void copy_row(int64_t row, char* target) const;

  std::shared_ptr<const Source> source_;
  std::string name_;
  ElementType type_;
  std::vector<int64_t> shape_;
  size_t begin_;
  bool is_fortran_;
  int64_t row_elements_ = 1;
};

/// The bytes of a file, mapped. Throws the same errors as MappedFile.
std::shared_ptr<const StoredArray::Source> map_source(const std::string& path);
/// Bytes in memory.
std::shared_ptr<const StoredArray::Source> memory_source(std::string bytes);

}  // namespace stepop
