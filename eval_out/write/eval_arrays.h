#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "eval_out/eval_schema.h"
#include "eval_out/hdf5/hdf5.h"
#include "eval_out/write/eval_batch.h"

namespace stepop {

/// An array in an open file, written batch by batch. Its functions need a Hdf5Lock.
class EvalArrayWriter {
 public:
  virtual ~EvalArrayWriter() = default;

  /// The most bytes by which the file grows when `column` is written; 0 for an array that has all
  /// its space.
  virtual int64_t growth(const EvalColumn& column) const;

  /// Writes the rows from `first` on.
  virtual void write(int64_t first, const EvalColumn& column) = 0;

  /// Called once, after the last row.
  virtual void finish() {}
};

/// Creates the array for `rows` rows; the room for a ragged array is estimated from the first
/// batch, of `batch_size` rows.
std::unique_ptr<EvalArrayWriter> create_array(hid_t file, const EvalArray& array, int64_t rows,
                                              const EvalColumn& batch, int64_t batch_size);

/// Opens an array of the file `path` that another process left, to resume after its first `rows`
/// rows. Later rows are not read, since they may be half written.
std::unique_ptr<EvalArrayWriter> open_array(hid_t file, const std::string& path,
                                            const EvalArray& array, int64_t rows);

}  // namespace stepop
