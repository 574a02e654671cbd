#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "eval_out/callbacks/callback.h"
#include "eval_out/hdf5/hdf5_values.h"

namespace stepop {

/// The numbers that each row has under one key, of any shape, read block by block: from the file's
/// outputs, or else the file's labels, the dataset's labels, or the dataset's examples one by one.
class RowValues {
 public:
  /// Where to look besides the file.
  enum class From { kFile, kFileOrDataset };
  /// Whether rows may have different lengths.
  enum class Lengths { kOne, kAny };

  /// `parameter` is the callback's parameter that names the key. Throws Error, with the available
  /// keys, when no source has tensors under the key, or when the file has no rows.
  RowValues(const CallbackArguments& arguments, const std::string& key,
            const std::string& parameter, From from, Lengths lengths = Lengths::kOne);

  /// `outputs/logits`, or `"image" of the dataset`.
  const std::string& name() const { return name_; }
  bool is_in_file() const { return where_ == Where::kFile; }
  /// Rows have different lengths: `shape` is that of one value, and `read` returns the values of
  /// all rows one after another.
  bool is_ragged() const { return is_ragged_; }
  /// The shape of one row.
  const std::vector<int64_t>& shape() const { return shape_; }
  at::ScalarType dtype() const { return dtype_; }
  int64_t rows() const { return arguments_.data_out.rows(); }
  /// The number of rows that take about 8 MB, at least 1.
  int64_t rows_per_block() const;

  /// The rows `first` to `first + count`, [count, ...].
  at::Tensor read(int64_t first, int64_t count) const;

  /// As EvalFile::read_counting; undefined for values of the dataset.
  at::Tensor read_counting(int64_t first, int64_t count) const;

  /// Throws `outputs/logits has a NaN in row 3 (example 17 of the dataset)` for the first row with
  /// a NaN in `values`, which begin at row `first`.
  void refuse_nan(const at::Tensor& values, int64_t first) const;

  /// `row 3 (example 17 of the dataset)`
  std::string row_text(int64_t row) const;

 private:
  enum class Where { kFile, kLabels, kExamples };

  bool find_in_dataset(const std::string& key);

  const CallbackArguments& arguments_;
  std::string key_;
  std::string name_;
  Where where_ = Where::kFile;
  bool is_ragged_ = false;
  at::Tensor labels_;
  std::vector<int64_t> shape_;
  at::ScalarType dtype_ = at::kFloat;
};

/// Throws Error when the two are the same array, or have different shapes.
void check_pair(const RowValues& prediction, const RowValues& target);

/// The numbers of channels that a callback takes.
enum class Channels { kGreyOrColour, kAny };

/// Throws Error unless each row of `values` is an image: [C, H, W], or [H, W], of floats in [-1, 1]
/// or of uint8. C is 1 or 3, or what `image_grid` shows.
void check_images(const RowValues& values, Channels channels = Channels::kGreyOrColour);

/// The rows of such values as float images [rows, C, H, W] in [-1, 1]; uint8 0 becomes -1 and 255
/// becomes 1. Floats outside the range are not changed.
at::Tensor to_images(const at::Tensor& rows);

}  // namespace stepop
