#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "eval_out/callbacks/callback.h"
#include "eval_out/hdf5/hdf5_values.h"

namespace stepop {

/// The numbers that each row has under one key, of any shape, read block by block: from the file's
/// outputs, else its labels, else the dataset's labels, else its examples one by one.
class RowValues {
 public:
  /// Where to look besides the file.
  enum class From { kFile, kFileOrDataset };

  /// `parameter` is the callback's that names the key. Throws Error, which says what there is, when
  /// nobody has the key, or has no tensors under it, or the file has no rows.
  RowValues(const CallbackArguments& arguments, const std::string& key,
            const std::string& parameter, From from);

  /// `outputs/logits`, or `"image" of the dataset`.
  const std::string& name() const { return name_; }
  bool is_in_file() const { return where_ == Where::kFile; }
  /// Of one row.
  const std::vector<int64_t>& shape() const { return shape_; }
  at::ScalarType dtype() const { return dtype_; }
  int64_t rows() const { return arguments_.data_out.rows(); }
  /// How many rows take about 8 MB, at least 1.
  int64_t rows_per_block() const;

  /// Rows `first` to `first + count`, [count, ...].
  at::Tensor read(int64_t first, int64_t count) const;

  /// `outputs/logits has a NaN in row 3 (example 17 of the dataset)`: throws that for the first row
  /// of `values`, which begin at row `first`, that has one.
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
  at::Tensor labels_;
  std::vector<int64_t> shape_;
  at::ScalarType dtype_ = at::kFloat;
};

/// Throws Error when what is to be compared is the same array, or of two shapes.
void check_pair(const RowValues& prediction, const RowValues& target);

/// Throws Error unless each row of `values` is an image: [C, H, W] with C = 1 or 3, or [H, W], of
/// floats in [-1, 1] or of uint8.
void check_images(const RowValues& values);

/// The rows of such values as float images [rows, C, H, W] in [-1, 1]; 0 of uint8 is -1 and 255 is
/// 1. What lies outside stays.
at::Tensor to_images(const at::Tensor& rows);

}  // namespace stepop
