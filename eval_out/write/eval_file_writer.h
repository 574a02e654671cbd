#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "eval_out/eval_schema.h"
#include "eval_out/hdf5/hdf5_room.h"
#include "eval_out/hdf5/hdf5_values.h"
#include "eval_out/write/eval_arrays.h"
#include "eval_out/write/eval_batch.h"
#include "eval_out/write/eval_compressed.h"
#include "runtime/core/base/ordered_map.h"

namespace stepop {

/// The file that an evaluation writes until it has its name. Removes it in the end when it is
/// worthless: when its writing failed, or did not begin, before it held a row.
struct EvalPartFile {
  explicit EvalPartFile(std::string part) : path(std::move(part)) {}
  ~EvalPartFile();
  EvalPartFile(const EvalPartFile&) = delete;
  EvalPartFile& operator=(const EvalPartFile&) = delete;

  /// Whether there is such a file. Throws Error when there is one that the system does not open.
  static bool can_open(const std::string& part);

  /// Removes one that is there; who reads it keeps it as it is. Throws Error, also when another
  /// process is writing it.
  void make_way() const;

  std::string path;
  bool is_worthless = false;
};

/// The .part of an evaluation as an open HDF5 file; what EvalWriter's thread writes into. What is
/// written finds its space reserved: after a write that finds the disk full, a heap of strings may
/// be longer than the file says it is, and the rows that were there before could not be read.
class EvalFileWriter {
 public:
  /// Creates the file `part` for `rows` rows, in the place of one that is there; who has that one
  /// open keeps it. Throws Error with the path and the reason.
  EvalFileWriter(std::string part, int64_t rows, const OrderedMap<Attribute>& attributes,
                 EvalCompression compression);

  /// Opens the file `part` that another process left, to resume behind its rows; null when there is
  /// none, when it has no rows, is not for as many rows with exactly these attributes, or is
  /// damaged. Its arrays stay compressed, or not. Throws Error when the system does not open it,
  /// and when another process has it open: its rows may be whole.
  static std::unique_ptr<EvalFileWriter> resume(const std::string& part, int64_t rows,
                                                const OrderedMap<Attribute>& attributes);

  /// Writes the chunks that are full.
  ~EvalFileWriter();
  EvalFileWriter(const EvalFileWriter&) = delete;
  EvalFileWriter& operator=(const EvalFileWriter&) = delete;

  /// The arrays of the first batch, empty before. Set by the thread that prepares batches and read
  /// by the one that writes them, with a queue between the two.
  std::vector<EvalArray> arrays;

  /// The rows that were there when the file was opened, and the last one's index in the dataset.
  int64_t first_row() const { return first_row_; }
  int64_t last_index() const { return last_index_; }

  void write(const EvalBatch& batch);
  /// After the last row: marks the file complete and closes it.
  void finish();

  const std::string& part() const { return part_.path; }

 private:
  struct Reopened {};
  EvalFileWriter(Reopened, const std::string& part, int64_t rows);

  template <class Function>
  void in_context(const std::string& what, const Function& function);
  void create_arrays(const EvalBatch& batch);
  void open_arrays();
  void write_batch(const EvalBatch& batch);
  void reserve_growth(const EvalBatch& batch);
  void write_compressed();
  void claim_rows(int64_t rows);
  void check_space(double bytes) const;
  void flush();
  void close_arrays();

  EvalPartFile part_;  // first: destroyed when the file is closed
  int64_t rows_;
  EvalCompression compression_ = EvalCompression::kNone;
  int64_t first_row_ = 0;
  int64_t last_index_;
  int64_t claimed_rows_ = 0;
  int64_t rows_at_once_ = 0;  // with compressed arrays: so many are claimed together
  bool grows_ = false;        // has arrays that are not allocated in advance
  bool is_sound_ = false;     // wrote something, and nothing failed
  Hdf5Id file_;
  Hdf5Id index_;
  Hdf5Id written_rows_;
  Hdf5Id complete_;
  std::vector<std::unique_ptr<EvalArrayWriter>> writers_;  // null for one that is compressed
  CompressedArrays compressed_;
  Hdf5Room room_;
};

}  // namespace stepop
