#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "eval_out/eval_schema.h"
#include "eval_out/hdf5/hdf5.h"

namespace stepop {

/// One batch of one array, on the CPU and in the order of the file, owned by nobody else.
struct EvalColumn {
  at::Tensor values;             ///< [B, ...]; all examples' values behind one another if ragged.
  std::vector<int64_t> lengths;  ///< Of each example, if ragged.
  std::vector<std::string> texts;
};

/// Copies `value`, whose description is `array`, away from its device and its graph. `spare` is a
/// column of an earlier batch, or empty; its memory is used again when it fits: fresh memory costs
/// as much as the copy.
EvalColumn to_column(const EvalArray& array, const EvalValue& value, EvalColumn spare);

/// An array in an open file, written batch by batch. Its functions need a Hdf5Lock.
class EvalArrayWriter {
 public:
  virtual ~EvalArrayWriter() = default;

  /// At most how many bytes the file grows by when `column` is written; 0 for an array that has all
  /// its space.
  virtual int64_t growth(const EvalColumn& column) const;

  /// Writes the rows from `first` on.
  virtual void write(int64_t first, const EvalColumn& column) = 0;

  /// Called once, after the last row.
  virtual void finish() {}
};

/// Creates the array for `rows` rows; the first batch, of `batch_size` rows, tells how much room a
/// ragged array is going to need.
std::unique_ptr<EvalArrayWriter> create_array(hid_t file, const EvalArray& array, int64_t rows,
                                              const EvalColumn& batch, int64_t batch_size);

/// Opens an array of the file `path` that another process left, to go on behind its first `rows`
/// rows. What it wrote of later rows is not looked at: it may be half written.
std::unique_ptr<EvalArrayWriter> open_array(hid_t file, const std::string& path,
                                            const EvalArray& array, int64_t rows);

/// The bytes that `rows` rows of these arrays take; ragged arrays and text as their first batch.
double bytes_of(const EvalColumn& batch, int64_t batch_size, int64_t rows);

}  // namespace stepop
