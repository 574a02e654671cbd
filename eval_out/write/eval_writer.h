#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "eval_out/eval_outputs.h"
#include "eval_out/eval_schema.h"
#include "eval_out/hdf5/hdf5_values.h"

namespace stepop {

template <class Item>
class BackgroundQueue;

struct EvalWriterOptions {
  /// Batches that may wait for the disk before `write` waits for it: what bounds the memory. Those
  /// that are gathered count as one.
  int queued_batches = 3;
  /// Batches that come within this time are gathered, up to 256 KiB, and written together. It is
  /// what a kill may cost, beside those that wait. With 0 each is written by itself.
  std::chrono::milliseconds gather_time{500};
  /// Of tensors. Compressed rows are in the file, and counted, when their chunk is full: `rows` of
  /// the file goes by multiples of the first batch's size, and a few more batches are in memory.
  EvalCompression compression = EvalCompression::kNone;
  /// Resumes behind the rows of a .part that was left at this path, when it was made for as many
  /// rows with exactly these attributes; `rows()` says how many there are. Else it is replaced. One
  /// that another process has open is an Error of the constructor.
  bool resume = false;
};

struct EvalBatch;
class EvalFileWriter;

/// Writes the outputs of one evaluation into one HDF5 file, in the format that eval_out/README.md
/// describes. A background thread does the writing; all functions are for one thread.
///
/// The file is `path` + ".part" until `finish` gives it its name. Whatever happens before - an
/// exception, a kill - the .part opens, with `complete` false and `rows` rows readable; the next
/// evaluation that writes to `path` resumes it, or replaces it.
class EvalWriter {
 public:
  /// Creates the file for `rows` rows. `attributes` are stored in it, beside the writer's own
  /// format_version, rows and complete. Throws Error with the path and the reason.
  EvalWriter(std::string path, int64_t rows, OrderedMap<Attribute> attributes = {},
             EvalWriterOptions options = {});

  /// Writes what is waiting (of compressed arrays full chunks), and leaves the .part unless
  /// `finish` was called.
  ~EvalWriter();
  EvalWriter(const EvalWriter&) = delete;
  EvalWriter& operator=(const EvalWriter&) = delete;

  /// Appends a batch; `indices` are its examples' indices in the dataset, which must increase
  /// throughout. Tensors may be on any device and in any graph; they are copied. Waits while
  /// `queued_batches` are waiting. Throws Error with the key when the batch cannot be written (see
  /// check_eval_outputs) or its arrays are not those of the first, and when a batch before it
  /// failed to be written.
  void write(const EvalOutputs& outputs, std::span<const int64_t> indices);

  /// The rows that were written or are waiting: at first those of the .part that is resumed.
  int64_t rows() const { return next_row_; }

  /// Writes what is waiting, marks the file complete, forces it to the disk and gives it its name.
  /// Throws Error when rows are missing or something could not be written.
  void finish();

 private:
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
  // After file_, which its thread uses. An item's batches are written together.
  std::unique_ptr<BackgroundQueue<std::vector<EvalBatch>>> queue_;
};

}  // namespace stepop
