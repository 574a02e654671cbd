#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/base/random.h"

namespace stepop {

/// Memory for the examples of a batch, which are written row by row.
struct BatchRows {
  OrderedMap<at::Tensor> tensors;  ///< [B, ...], on the CPU and contiguous.
  OrderedMap<std::vector<std::string>> texts;

  /// The first value of row `row` of the tensor at `key`, whose type must be T. Throws Error for a
  /// missing key.
  template <class T>
  T* at(std::string_view key, int64_t row) const {
    const at::Tensor& tensor = tensors.at(key);
    return tensor.mutable_data_ptr<T>() + row * tensor.stride(0);
  }
};

/// A further interface for a Dataset that can write an example directly into a row of a batch: a
/// batch from several such datasets is then made without another copy. Several threads call it at
/// once, each with different rows.
class RowWriter {
 public:
  virtual ~RowWriter() = default;

  /// Memory for `count` examples, with the keys, types and shapes of `get_batch`; values are
  /// arbitrary. Empty when the examples differ in keys, types or shapes. The result depends only on
  /// `count`.
  virtual std::optional<BatchRows> rows_for(int64_t count) const = 0;

  /// Writes the example at `index`, as `get` returns it with the same `random`, into row `row` of
  /// `rows`, which may have further keys. Throws the same exceptions as `get`.
  virtual void write_row(int64_t index, Random& random, int64_t row, BatchRows& rows) const = 0;
};

}  // namespace stepop
