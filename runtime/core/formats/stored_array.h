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

/// What NumPy calls a dtype, as far as tensors and texts can hold it.
struct ElementType {
  char kind = 'f';           ///< As NumPy has it: b, i, u, f, c, S (bytes) or U (UTF-32).
  int64_t size = 4;          ///< In bytes.
  bool is_reversed = false;  ///< The most significant byte comes first.

  bool is_text() const { return kind == 'S' || kind == 'U'; }
  /// Of the tensors that it is read as. There are none of unsigned numbers of more than a byte:
  /// uint16 becomes int32, uint32 and uint64 become int64.
  at::ScalarType tensor_type() const;
  /// `int64`, `float32`, `text of 12 characters`
  std::string describe() const;
};

/// Reads NumPy's `<f4`, `|b1`, `>i8`, `<U12`, or a name, `int64`, `float32`, `bool`. Throws Error,
/// which says what helps, for what no tensor can hold: Python objects, records, times.
ElementType parse_element_type(const std::string& text);

/// An array in the bytes of a file, which may be mapped: elements are read when they are asked for.
/// All const functions may be called by several threads at once.
class StoredArray {
 public:
  /// The bytes that an array is read from, and where they come from.
  class Source {
   public:
    virtual ~Source() = default;
    virtual std::string_view bytes() const = 0;
    /// Throws Error when the bytes can no longer be read.
    virtual void check() const {}
  };

  /// The array begins at `begin` of the source; `name` is what messages begin with. Throws Error
  /// when the source has too few bytes for it.
  StoredArray(std::shared_ptr<const Source> source, std::string name, ElementType type,
              std::vector<int64_t> shape, size_t begin = 0, bool is_fortran = false);

  const std::string& name() const { return name_; }
  const ElementType& type() const { return type_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  /// The first dimension; 1 of a number without dimensions.
  int64_t rows() const { return shape_.empty() ? 1 : shape_[0]; }
  /// Of all elements, as they are stored.
  int64_t bytes() const;
  /// `float32 [100, 3]`
  std::string describe() const;

  /// The rows, [rows.size(), ...], of an array of numbers. Throws Error for a row that is not there
  /// and for a number that its tensor cannot hold.
  at::Tensor gather(std::span<const int64_t> rows) const;
  /// All of it, in its shape.
  at::Tensor all() const;
  /// The texts in the rows of an array of texts [N], in UTF-8, without the zeros behind them.
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

/// The bytes of a file, mapped. Throws Error as MappedFile does.
std::shared_ptr<const StoredArray::Source> map_source(const std::string& path);
/// Bytes in memory.
std::shared_ptr<const StoredArray::Source> memory_source(std::string bytes);

}  // namespace stepop
