#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "eval_out/eval_schema.h"
#include "eval_out/hdf5/hdf5_values.h"
#include "runtime/core/base/interrupt.h"
#include "runtime/core/base/ordered_map.h"

namespace stepop {

/// Where a file is from. One that this process wrote is read as it is. One that another process of
/// ours left may be damaged, so that a child process walks through it first, see probe_hdf5. One
/// from anywhere may be made to fill the memory, too: arrays that claim to hold far more than the
/// file stores are refused, see Hdf5Sizes; elsewhere a mask may be as empty as it likes.
enum class EvalOrigin { kAnywhere, kLeftBehind, kOwn };

/// A file of evaluation outputs, opened for reading; eval_out/README.md describes its format.
/// Nothing is held in memory but the list of arrays. Also opens the .part of an evaluation that was
/// killed, with the rows that it had written. May be used by several threads at once.
///
/// Keys are those in the file: `outputs/logits`, `labels/loss`; a key that is not there throws
/// Error with those that are.
class EvalFile {
 public:
  /// Throws Error for a file that is missing, no HDF5, cut short, no evaluation outputs, of a newer
  /// format, with arrays that are not those of the format, or whose arrays lie in other files.
  /// `interrupt` is called before each reading; what it throws passes.
  explicit EvalFile(std::string path, InterruptCheck interrupt = {},
                    EvalOrigin origin = EvalOrigin::kAnywhere);
  ~EvalFile();
  EvalFile(EvalFile&&) noexcept;

  const std::string& path() const { return path_; }
  /// The rows that were written; all of them when `complete`.
  int64_t rows() const { return rows_; }
  bool complete() const { return complete_; }
  const OrderedMap<Attribute>& attributes() const { return attributes_; }

  /// Sorted by key; `shape` is that of an example, without the rows.
  const std::vector<EvalArray>& arrays() const { return arrays_; }
  std::vector<std::string> keys() const;
  /// The same for messages: `labels/loss, outputs/logits`, or `none`.
  std::string key_list() const;
  /// The keys that `name` may mean: itself, else those among `outputs/<name>` and `labels/<name>`
  /// that are there, the output first.
  std::vector<std::string> keys_named(const std::string& name) const;
  bool contains(std::string_view key) const;
  const EvalArray& array(std::string_view key) const;

  /// The rows that it was made for.
  int64_t index_length() const { return index_length_; }

  /// Whether it is of the evaluation with these attributes, made for `rows` rows.
  bool is_of(const OrderedMap<Attribute>& attributes, int64_t rows) const;

  /// The length of the file.
  int64_t file_bytes() const { return file_bytes_; }

  /// Each row's index in the dataset, int64 [rows].
  at::Tensor index() const { return index(0, rows_); }
  at::Tensor index(int64_t first, int64_t count) const;

  /// Rows `first` to `first + count` of a tensor array, [count, ...]; throws Error for rows that
  /// are not there and for an array of another kind.
  at::Tensor read(std::string_view key, int64_t first, int64_t count) const;
  at::Tensor read(std::string_view key) const { return read(key, 0, rows_); }

  /// The same for ragged arrays: a tensor [length, ...] for each row. Throws Error when the offsets
  /// are damaged.
  std::vector<at::Tensor> read_ragged(std::string_view key, int64_t first, int64_t count) const;

  /// Of ragged arrays the first dimension of each of these rows, of texts their bytes. Of texts
  /// nothing is read but where they are.
  std::vector<int64_t> read_lengths(std::string_view key, int64_t first, int64_t count) const;

  /// The same for text. Throws Error for references that lead to no text, and when the texts are
  /// longer than the file.
  std::vector<std::string> read_texts(std::string_view key, int64_t first, int64_t count) const;

  /// How many rows of a tensor array take about 8 MB, at least 1: for reading it block by block.
  int64_t rows_per_block(std::string_view key) const;

  /// Calls the `interrupt` of the constructor: for what takes long without reading.
  void throw_if_interrupted() const;

  /// The bytes that the array takes in the file, compressed where it is; of text only the
  /// references, not the characters.
  int64_t stored_bytes(std::string_view key) const;

 private:
  struct File;

  void look_inside(EvalOrigin origin);
  const EvalArray& checked(std::string_view key, EvalKind kind, int64_t first, int64_t count) const;
  std::vector<int64_t> text_lengths(const EvalArray& array, int64_t first, int64_t count) const;
  void check_rows(std::string_view key, int64_t first, int64_t count) const;
  at::Tensor read_rows(const std::string& name, const EvalArray& array, int64_t first,
                       int64_t count) const;
  at::Tensor read_offsets(const EvalArray& array, int64_t first, int64_t count) const;

  std::string path_;
  InterruptCheck interrupt_;
  std::unique_ptr<File> file_;
  OrderedMap<Attribute> attributes_;
  std::vector<EvalArray> arrays_;
  int64_t rows_ = 0;
  int64_t index_length_ = 0;
  int64_t file_bytes_ = 0;
  bool complete_ = false;
};

}  // namespace stepop
