#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eval_out/eval_outputs.h"
#include "eval_out/eval_schema.h"
#include "eval_out/hdf5/hdf5_values.h"
#include "runtime/data/dataset.h"

namespace stepop {

template <class Item>
class BackgroundQueue;

struct EvalWriterOptions {
  /// The number of batches that may wait for the disk before `write` waits too, which bounds the
  /// memory. Gathered batches count as one.
  int queued_batches = 3;
  /// Batches that arrive within this time are gathered, up to 256 KiB, and written together. A kill
  /// may lose them, in addition to the batches that wait. With 0, each batch is written separately.
  std::chrono::milliseconds gather_time{500};
  /// The compression of tensors. Compressed rows are in the file, and counted, once their chunk is
  /// full: the file's `rows` grows in multiples of the first batch's size, and a few more batches
  /// are in memory.
  EvalCompression compression = EvalCompression::kNone;
  /// Resumes after the rows of a .part at this path if it was made for the same number of rows with
  /// exactly these attributes; `rows()` gives the number of its rows. Otherwise the .part is
  /// replaced. If another process has it open, the constructor throws Error.
  bool resume = false;
  /// By key: the names of the classes that an output or label of this key holds as numbers, an
  /// attribute of its array.
  OrderedMap<std::vector<std::string>> class_names = {};
  /// The number of examples of the dataset, an attribute of `index`; 0 leaves it out.
  int64_t dataset_size = 0;
  /// The examples' rows in the file from which the dataset took them: the array `source_index`.
  std::optional<SourceRows> source_rows = {};
};

struct EvalBatch;
class EvalFileWriter;

/// Writes the outputs of one evaluation into one HDF5 file, in the format that eval_out/README.md
/// describes. A background thread does the writing; all functions are for one thread.
///
/// The file is `path` + ".part" until `finish` gives it its name. After an exception or a kill, the
/// .part can still be opened, with `complete` false and `rows` rows readable; the next evaluation
/// that writes to `path` resumes or replaces it.
class EvalWriter {
 public:
  /// Creates the file for `rows` rows. `attributes` are stored in it, in addition to the writer's
  /// format_version, rows and complete. Throws Error with the path and the reason.
  EvalWriter(std::string path, int64_t rows, OrderedMap<Attribute> attributes = {},
             EvalWriterOptions options = {});

  /// Writes all waiting batches (for compressed arrays, only full chunks), and leaves the .part
  /// unless `finish` was called.
  ~EvalWriter();
  EvalWriter(const EvalWriter&) = delete;
  EvalWriter& operator=(const EvalWriter&) = delete;

  /// Appends a batch; `indices` are its examples' indices in the dataset, which must increase over
  /// all batches. Tensors may be on any device and in any graph; they are copied. Waits while
  /// `queued_batches` are waiting. Throws Error with the key when the batch cannot be written (see
  /// check_eval_outputs) or its arrays differ from the first batch, and when an earlier batch could
  /// not be written.
  void write(const EvalOutputs& outputs, std::span<const int64_t> indices);

  /// The number of rows that were written or are waiting, including the rows of a resumed .part.
  int64_t rows() const { return next_row_; }

  /// Writes all waiting batches, marks the file complete, forces it to the disk and gives it its
  /// final name. Throws Error when rows are missing or a write failed.
  void finish();

 private:
  void check_rows(const std::vector<EvalArray>& arrays, std::span<const int64_t> indices) const;
  void push_gathered();

  std::string path_;
  int64_t rows_;
  int64_t next_row_ = 0;
  int64_t last_index_ = 0;
  bool is_finished_ = false;
  std::unique_ptr<EvalFileWriter> file_;
  std::chrono::milliseconds gather_time_;
  std::vector<EvalBatch> gathered_;
  size_t gathered_bytes_ = 0;
  std::chrono::steady_clock::time_point last_push_;
  std::vector<EvalBatch> spares_;  // their memory is used again
  // Declared after file_, which the queue's thread uses. An item's batches are written together.
  std::unique_ptr<BackgroundQueue<std::vector<EvalBatch>>> queue_;
};

}  // namespace stepop
