#pragma once

#include <cstdint>
#include <memory>
#include <optional>
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
#include "runtime/data/dataset.h"

namespace stepop {

/// The .part file that an evaluation writes before the file gets its final name. Removes the file
/// at the end if it is worthless: if writing failed, or did not begin, before the file held a row.
struct EvalPartFile {
  explicit EvalPartFile(std::string part) : path(std::move(part)) {}
  ~EvalPartFile();
  EvalPartFile(const EvalPartFile&) = delete;
  EvalPartFile& operator=(const EvalPartFile&) = delete;

  /// Whether the file exists. Throws Error when the file exists but the system cannot open it.
  static bool can_open(const std::string& part);

  /// Removes an existing file; a process that has it open for reading keeps its contents. Throws
  /// Error, about the file `name`, when that fails, and when another process is writing the file.
  void make_way(const std::string& name) const;

  std::string path;
  bool is_worthless = false;
};

/// The .part of an evaluation as an open HDF5 file, into which EvalWriter's thread writes. Space is
/// reserved before each write: if a write found the disk full, a heap of strings could be longer
/// than the file records, and earlier rows could not be read.
class EvalFileWriter {
 public:
  /// Creates the file `part` for `rows` rows and replaces an existing file; a process that has the
  /// old file open keeps it. The new file has its name from the first batch on. Throws Error with
  /// the path and the reason.
  EvalFileWriter(std::string part, int64_t rows, const OrderedMap<Attribute>& attributes,
                 EvalCompression compression);

  /// Opens the file `part` that another process left, to resume after its rows. Null when the file
  /// is missing, damaged, without rows, or was made for another number of rows or other attributes.
  /// The compression of its arrays does not change. Throws Error when the system cannot open the
  /// file, and when another process has it open, since its rows may be valid.
  static std::unique_ptr<EvalFileWriter> resume(const std::string& part, int64_t rows,
                                                const OrderedMap<Attribute>& attributes);

  /// Writes the full chunks.
  ~EvalFileWriter();
  EvalFileWriter(const EvalFileWriter&) = delete;
  EvalFileWriter& operator=(const EvalFileWriter&) = delete;

  /// The arrays of the first batch; empty before. The thread that prepares batches sets this member
  /// and the thread that writes them reads it, with a queue between the two.
  std::vector<EvalArray> arrays;

  /// As in EvalWriterOptions; set before the first batch.
  OrderedMap<std::vector<std::string>> class_names;
  int64_t dataset_size = 0;
  std::optional<SourceRows> source_rows;

  /// The number of rows in the file when it was opened, and the last row's index in the dataset.
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
  void name_classes();
  void describe_index();
  void take_name();
  void open_arrays();
  void write_batch(const EvalBatch& batch);
  void reserve_growth(const EvalBatch& batch);
  void write_compressed();
  void claim_rows(int64_t rows);
  void check_space(double bytes) const;
  void flush();
  void close_arrays();

  EvalPartFile part_;  // the first members, so that they are destroyed after the file is closed
  EvalPartFile temporary_;  // the file's name, until all arrays are there
  int64_t rows_;
  EvalCompression compression_ = EvalCompression::kNone;
  int64_t first_row_ = 0;
  int64_t last_index_;
  int64_t claimed_rows_ = 0;
  int64_t rows_at_once_ = 0;  // with compressed arrays: the file claims this many rows together
  bool grows_ = false;        // has arrays that are not allocated in advance
  bool is_sound_ = false;     // data was written and no write failed
  Hdf5Id file_;
  Hdf5Id index_;
  Hdf5Id source_index_;  // none when the index is the row in the file
  Hdf5Id written_rows_;
  Hdf5Id complete_;
  std::vector<std::unique_ptr<EvalArrayWriter>> writers_;  // null for a compressed array
  CompressedArrays compressed_;
  Hdf5Room room_;
};

}  // namespace stepop
