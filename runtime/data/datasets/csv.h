#pragma once

#include <string>
#include <vector>

#include "runtime/data/dataset.h"
#include "runtime/data/datasets/csv_columns.h"
#include "runtime/data/datasets/image_reader.h"

namespace stepop {

/// A table in a CSV file (RFC 4180, plain or gzip) whose first line names the columns; one row is
/// one example, a column's name its key, in which a slash nests.
///
/// Parameters: `path`, the file; `separator` = ","; `size` and `channels` of images as ImageReader
/// has them; `columns`, a map from a column to its type, or to `{type: ..., key: ...}` to give it
/// another key:
///
///     columns: {file: {type: image, key: image}, label: {type: class, key: class}, name: text}
///
/// The types: `int`, an int64 []; `float`, a float []; `text`; `class`, an int64 [] that is the
/// text's place among all texts of the column, sorted, or in the list `classes`; `image`, the path
/// of a PNG or JPEG relative to the CSV file, read as float [C, H, W] in [-1, 1]; `skip`. Columns
/// that are not named are int, float or text, whatever all of their cells are. A column without a
/// name, as pandas writes its index, is left out.
///
/// Throws Error with file, line and column for a cell of another type and for a missing image, and
/// when there are no rows.
class Csv : public Dataset {
 public:
  explicit Csv(const Config& params);

  int64_t size() const override { return static_cast<int64_t>(table_.lines.size()); }
  Example get(int64_t index, Random& random) const override;
  /// Gathers at once unless there are images to read.
  std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                 std::span<Random> randoms) const override;
  /// For the key of an int, float or class column its values, [size()].
  at::Tensor labels(std::string_view key) const override;
  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const override {
    return ImageReader::collate(examples, std::move(indices));
  }

 private:
  at::Tensor read_image_of(const CsvColumn& column, size_t row) const;

  ImageReader reader_;
  CsvTable table_;  ///< Path and lines only; the cells are in `columns_`.
  std::vector<CsvColumn> columns_;
  bool has_images_ = false;
};

}  // namespace stepop
