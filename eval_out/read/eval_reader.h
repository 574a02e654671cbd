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

/// Where a file comes from. A file from this process (kOwn) is read directly. A file that another
/// stepop process left (kLeftBehind) may be damaged, so a child process walks through it first, see
/// probe_hdf5. A file from anywhere may also be made to fill the memory, so arrays that claim to
/// hold far more than the file stores are refused, see Hdf5Sizes. This last check is not used for
/// the other two, whose arrays, such as masks, may be nearly empty.
enum class EvalOrigin { kAnywhere, kLeftBehind, kOwn };

/// A file of evaluation outputs, opened for reading; eval_out/README.md describes its format. Only
/// the list of arrays is held in memory. Also opens the .part of an evaluation that was killed,
/// with the rows that were written. May be used by several threads at once.
///
/// Keys are the keys in the file: `outputs/logits`, `labels/loss`; an unknown key throws Error with
/// the available keys.
class EvalFile {
 public:
  /// Throws Error for a file that is missing, not HDF5, truncated, not a file of evaluation
  /// outputs, or of a newer format; and for arrays that do not follow the format or are in other
  /// files. `interrupt` is called before each read; its exceptions are passed on.
  explicit EvalFile(std::string path, InterruptCheck interrupt = {},
                    EvalOrigin origin = EvalOrigin::kAnywhere);
  ~EvalFile();
  EvalFile(EvalFile&&) noexcept;

  const std::string& path() const { return path_; }
  /// The number of rows that were written; all rows when `complete`.
  int64_t rows() const { return rows_; }
  bool complete() const { return complete_; }
  const OrderedMap<Attribute>& attributes() const { return attributes_; }

  /// The arrays, sorted by key; `shape` is the shape of an example, without the rows.
  const std::vector<EvalArray>& arrays() const { return arrays_; }
  std::vector<std::string> keys() const;
  /// The keys for messages: `labels/loss, outputs/logits`, or `none`.
  std::string key_list() const;
  /// The keys that `name` may mean: `name` itself, or else the existing ones of `outputs/<name>`
  /// and `labels/<name>`, the output first.
  std::vector<std::string> keys_named(const std::string& name) const;
  bool contains(std::string_view key) const;
  const EvalArray& array(std::string_view key) const;

  /// The number of rows for which the file was made.
  int64_t index_length() const { return index_length_; }

  /// Whether the file belongs to the evaluation with these attributes and was made for `rows` rows.
  bool is_of(const OrderedMap<Attribute>& attributes, int64_t rows) const;

  /// The length of the file.
  int64_t file_bytes() const { return file_bytes_; }

  /// Each row's index in the dataset, int64 [rows].
  at::Tensor index() const { return index(0, rows_); }
  at::Tensor index(int64_t first, int64_t count) const;

  /// The rows `first` to `first + count` of a tensor array, [count, ...]; throws Error for rows
  /// that do not exist and for an array of another kind.
  at::Tensor read(std::string_view key, int64_t first, int64_t count) const;
  at::Tensor read(std::string_view key) const { return read(key, 0, rows_); }

  /// Which rows count in a label's mean, bool [count]: those whose weight is not 0. Undefined for
  /// an array without weights, in which each row counts.
  at::Tensor read_counting(std::string_view key, int64_t first, int64_t count) const;

  /// The same for ragged arrays: a tensor [length, ...] for each row. Throws Error when the offsets
  /// are damaged.
  std::vector<at::Tensor> read_ragged(std::string_view key, int64_t first, int64_t count) const;

  /// For ragged arrays, the first dimension of each row; for texts, the bytes of each text. The
  /// texts themselves are not read, only their references.
  std::vector<int64_t> read_lengths(std::string_view key, int64_t first, int64_t count) const;

  /// The same for text. Throws Error for references that do not point to a text, and when the texts
  /// are longer than the file.
  std::vector<std::string> read_texts(std::string_view key, int64_t first, int64_t count) const;

  /// The number of rows of a tensor array that take about 8 MB, at least 1: for reading it block by
  /// block.
  int64_t rows_per_block(std::string_view key) const;

  /// Calls the constructor's `interrupt`: for code that takes long without reading.
  void throw_if_interrupted() const;

  /// The bytes that the array takes in the file, after compression; for text, only the references,
  /// not the characters.
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
