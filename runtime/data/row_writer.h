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

/// Room for the examples of a batch, which are written row by row.
struct BatchRows {
  OrderedMap<at::Tensor> tensors;  ///< [B, ...], on the CPU and contiguous.
  OrderedMap<std::vector<std::string>> texts;

  /// Where the values of row `row` of the tensor at `key`, of type T, begin. Throws Error for a key
  /// that is not there.
  template <class T>
  T* at(std::string_view key, int64_t row) const {
    const at::Tensor& tensor = tensors.at(key);
    return tensor.mutable_data_ptr<T>() + row * tensor.stride(0);
  }
};

/// What a Dataset is as well when it can write an example into a row of a batch: a batch out of
/// several such datasets is made without another copy. Called by several threads at once, each with
/// rows of its own.
class RowWriter {
 public:
  virtual ~RowWriter() = default;

  /// Room for `count` examples, with the keys, types and shapes that `get_batch` gives; values are
  /// arbitrary. Nothing when the examples differ in these. The answer depends on nothing but
  /// `count`.
  virtual std::optional<BatchRows> rows_for(int64_t count) const = 0;

  /// Writes all that the example at `index` has, as `get` gives it with the same `random`, into row
  /// `row` of `rows`, which may have further keys. Throws what `get` throws.
  virtual void write_row(int64_t index, Random& random, int64_t row, BatchRows& rows) const = 0;
};

}  // namespace stepop
