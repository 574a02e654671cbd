#include "runtime/data/datasets/csv.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>

#include "runtime/data/datasets/checks.h"

namespace stepop {
namespace {

char get_separator(const Config& params) {
  const auto separator = params.get("separator", ",");
  if (separator.size() != 1 || separator == "\"" || separator == "\n" || separator == "\r") {
    throw params.error("separator", "expected one character, as \",\" or \"\\t\"");
  }
  return separator[0];
}

}  // namespace

Csv::Csv(const Config& params)
    : reader_(params), table_(read_csv(get_file(params, "path"), get_separator(params))) {
  if (table_.lines.empty()) throw Error(table_.path + ": holds no rows below its header");
  columns_ = read_csv_columns(table_, params);
  table_.columns.clear();
  table_.columns.shrink_to_fit();
  for (const auto& column : columns_) {
    has_images_ = has_images_ || column.type == CsvType::kImage;
  }
}

at::Tensor Csv::read_image_of(const CsvColumn& column, size_t row) const {
  try {
    return reader_.read(column.texts[row]);
  } catch (const Error& error) {
    throw Error(fmt::format("{}:{}: column \"{}\": {}", table_.path, table_.lines[row], column.name,
                            error.what()));
  }
}

Example Csv::get(int64_t index, Random& /*random*/) const {
  check_index(index, size());
  const auto row = static_cast<size_t>(index);
  Example example;
  for (const auto& column : columns_) {
    if (column.type == CsvType::kText) {
      example.texts.set(column.key, column.texts[row]);
    } else if (column.type == CsvType::kImage) {
      example.tensors.set(column.key, read_image_of(column, row));
    } else {
      example.tensors.set(column.key, column.numbers.select(0, index).clone());
    }
  }
  return example;
}

std::optional<Batch> Csv::get_batch(std::span<const int64_t> indices,
                                    std::span<Random> /*randoms*/) const {
  if (has_images_) return std::nullopt;
  at::Tensor rows = at::empty({static_cast<int64_t>(indices.size())}, at::kLong);
  std::copy(indices.begin(), indices.end(), rows.mutable_data_ptr<int64_t>());
  for (const int64_t index : indices) check_index(index, size());
  OrderedMap<at::Tensor> tensors;
  OrderedMap<std::vector<std::string>> texts;
  for (const auto& column : columns_) {
    if (column.type == CsvType::kText) {
      std::vector<std::string> cells;
      for (const int64_t index : indices) {
        cells.push_back(column.texts[static_cast<size_t>(index)]);
      }
      texts.set(column.key, std::move(cells));
    } else {
      tensors.set(column.key, column.numbers.index_select(0, rows));
    }
  }
  return Batch(std::move(tensors), std::move(texts),
               std::vector<int64_t>(indices.begin(), indices.end()));
}

at::Tensor Csv::labels(std::string_view key) const {
  for (const auto& column : columns_) {
    if (column.key == key) return column.numbers;
  }
  return {};
}

STEPOP_REGISTER_DATASET(
    Csv, {"A table in a CSV file whose columns are values or paths of images.",
          {{"path", "", "file whose first line names the columns", true},
           {"columns", "null",
            "map from a column to its type (int, float, text, class, image, skip), or to "
            "{type: ..., key: ..., classes: [...]}; null: int, float or text, as the cells are"},
           {"separator", "\",\"", "one character"},
           {"size", "null", "[H, W] to resize images to; null: as stored"},
           {"channels", "null", "of images, 1 (grey) or 3 (colour); null: as stored"}}});

}  // namespace stepop
