#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/nearest.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/formats/csv_file.h"
#include "runtime/data/class_numbers.h"
#include "runtime/data/dataset.h"
#include "runtime/data/datasets/image_reader.h"
#include "runtime/data/datasets/tables/csv_columns.h"
#include "runtime/data/datasets/tables/csv_fit.h"
#include "runtime/data/datasets/tables/csv_missing.h"
#include "runtime/data/datasets/tables/csv_numbers.h"
#include "runtime/data/datasets/tables/float32_loss.h"
#include "runtime/data/keeps_float64.h"
#include "runtime/data/notice.h"

namespace stepop {
namespace {

template <class T>
void keep_rows(std::vector<T>& items, const std::vector<bool>& is_kept) {
  size_t kept = 0;
  for (size_t row = 0; row < items.size(); ++row) {
    if (!is_kept[row]) continue;
    if (kept != row) items[kept] = std::move(items[row]);
    ++kept;
  }
  items.resize(kept);
}

int64_t count_of(const std::vector<bool>& flags) {
  return std::count(flags.begin(), flags.end(), true);
}

at::Tensor bools_of(const std::vector<bool>& flags) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(flags.size())}, at::kBool);
  std::copy(flags.begin(), flags.end(), tensor.mutable_data_ptr<bool>());
  return tensor;
}

/// Throws UsageError for a key that another column has too.
void add_column(std::vector<CsvColumn>& columns, CsvColumn column, const Config& params,
                const std::string& place) {
  for (const auto& other : columns) {
    if (other.key != column.key) continue;
    throw params.error(
        place, fmt::format("the key \"{}\" is also that of {} \"{}\"", column.key,
                           other.numbers.dim() > 1 ? "the vector" : "the column", other.name));
  }
  columns.push_back(std::move(column));
}

/// Adds a column of bools for each column whose missing values are filled.
void add_masks(std::vector<CsvColumn>& columns, const MissingValues& missing,
               const std::vector<bool>& is_kept, const Config& params) {
  const auto masks = missing.masks();
  if (masks.empty() && !params.has("fit")) {
    throw params.error("masks", "no column has its missing values filled: missing: {age: mean}");
  }
  for (auto [name, is_missing] : masks) {
    const auto of = std::ranges::find(columns, name, &CsvColumn::name);
    if (of == columns.end()) continue;  // the column is skipped
    keep_rows(is_missing, is_kept);
    CsvColumn mask{.name = name + "_missing",
                   .key = of->key + "_missing",
                   .type = CsvType::kInt,
                   .numbers = bools_of(is_missing),
                   .texts = {}};
    add_column(columns, std::move(mask), params, "masks");
  }
}

/// The columns that the parameter `vectors` lists under `key`, side by side: float [rows, columns].
CsvColumn vector_of(const std::vector<CsvColumn>& columns, const std::string& key,
                    const Value& list, const Config& params) {
  const std::string place = join_path("vectors", key);
  if (!list.is_list() || list.as_list().empty()) {
    throw params.error(place, "expected a list of columns, found " + list.describe());
  }
  std::vector<at::Tensor> parts;
  std::vector<at::Tensor> exact;
  bool has_exact = false;
  for (const auto& item : list.as_list()) {
    const std::string name = item.is_text() ? item.as_text() : "";
    const auto column = std::ranges::find(columns, name, &CsvColumn::name);
    if (column == columns.end()) {
      std::vector<std::string> names;
      for (const auto& other : columns) names.push_back(other.name);
      throw params.error(
          place, fmt::format("no column {}; there are: {}", item.describe(), list_text(names)));
    }
    if (column->type != CsvType::kInt && column->type != CsvType::kFloat) {
      const std::string why =
          column->note.empty() ? "" : ": " + column->note.substr(kWarning.size());
      throw params.error(place,
                         fmt::format("the column \"{}\" is not one of numbers{}", name, why));
    }
    parts.push_back(column->numbers.to(at::kFloat));
    exact.push_back(column->exact.defined() ? column->exact : column->numbers.to(at::kDouble));
    has_exact = has_exact || float32_loss(exact.back()).share > kLeastFloat32Loss;
  }
  CsvColumn vector{.name = key,
                   .key = key,
                   .type = CsvType::kFloat,
                   .numbers = at::stack(parts, 1),
                   .texts = {}};
  if (has_exact) vector.exact = at::stack(exact, 1);
  return vector;
}

/// A column in a vector does not keep its own key.
void join_vectors(std::vector<CsvColumn>& columns, const Config& params) {
  if (!params.has("vectors")) return;
  const auto value = params.get<Value>("vectors");
  if (!value.is_map()) {
    throw params.error("vectors", fmt::format("expected a map from keys to lists of columns, such "
                                              "as {{x: [age, income]}}, found {}",
                                              value.describe()));
  }
  std::vector<CsvColumn> vectors;
  std::vector<std::string> taken;
  for (const auto& [key, list] : value.as_map()) {
    vectors.push_back(vector_of(columns, key, list, params));
    for (const auto& item : list.as_list()) taken.push_back(item.as_text());
  }
  std::erase_if(columns, [&](const auto& column) {
    return std::find(taken.begin(), taken.end(), column.name) != taken.end();
  });
  for (auto& vector : vectors) {
    const std::string place = join_path("vectors", vector.key);
    add_column(columns, std::move(vector), params, place);
  }
}

/// The rows of a table after the parameters were applied.
struct CsvRows {
  CsvTable table;  ///< Path and lines only; the cells are in `columns`.
  std::vector<CsvColumn> columns;
  std::string notice;
  std::vector<int64_t> rows;  ///< Their places in the file, from 0 below the header.
  int64_t count = 0;          ///< The rows of the file.
};

/// A line about how missing values were handled; empty when there were none to handle.
std::string notice_of(const std::string& path, const MissingValues& missing, const CsvFit& fit,
                      const std::vector<std::string>& absent) {
  std::vector<std::string> parts;
  if (!absent.empty()) {
    parts.push_back("without " + list_text(absent) + ", which the training table has");
  }
  const auto rows = static_cast<int64_t>(missing.dropped().size());
  if (const int64_t dropped = count_of(missing.dropped()); dropped > 0) {
    parts.push_back(fmt::format("left out {} of {} for missing values", with_thousands(dropped),
                                counted(rows, "row")));
  }
  const auto filled = missing.fill_texts(fit.fills);
  if (!filled.empty()) parts.push_back("filled missing values of " + list_text(filled));
  return parts.empty() ? "" : fmt::format("{}: {}", path, fmt::join(parts, "; "));
}

/// Says which classes no row has.
void add_class_notices(const std::vector<CsvColumn>& columns, std::string& notice) {
  for (const auto& column : columns) {
    const std::string text = column.classes ? column.classes->notice(column.numbers) : "";
    if (text.empty()) continue;
    notice += fmt::format("{}column \"{}\": {}", notice.empty() ? "" : "; ", column.name, text);
  }
}

/// `absent`: as in read_csv_table.
CsvRows read_rows(CsvTable table, const std::vector<std::string>& absent,
                  const CsvFoldOptions& fold_options, bool has_masks, const Config& params) {
  const MissingValues missing(table, params);
  const CsvFolds folds = read_csv_folds(table, fold_options, params);
  const CsvFit fit = fit_csv(table, missing, folds, params);
  missing.check();
  std::vector<bool> is_kept = missing.dropped();
  is_kept.flip();
  std::string notice = notice_of(table.path, missing, fit, absent);
  std::vector<int64_t> rows(table.lines.size());
  std::iota(rows.begin(), rows.end(), 0);
  const auto count = static_cast<int64_t>(rows.size());
  keep_rows(rows, is_kept);
  missing.fill(table, fit.fills);
  std::vector<bool> is_taken = folds.is_taken;
  keep_rows(is_taken, is_kept);
  keep_rows(table.lines, is_kept);
  for (auto& cells : table.columns) keep_rows(cells, is_kept);

  auto columns = read_csv_columns(table, params, fit.classes, missing.fitted_columns());
  std::vector<std::string> notes;
  for (const auto& column : columns) notes.push_back(column.note);
  if (has_masks) add_masks(columns, missing, is_kept, params);
  join_vectors(columns, params);
  table.columns = {};
  if (count_of(is_taken) == static_cast<int64_t>(is_taken.size())) {
    add_class_notices(columns, notice);
    notes.insert(notes.begin(), notice);
    return {std::move(table), std::move(columns), joined_notices(notes), std::move(rows), count};
  }
  keep_rows(table.lines, is_taken);
  keep_rows(rows, is_taken);
  if (table.lines.empty()) throw Error(table.path + ": no row of this part is left");
  const at::Tensor places = bools_of(is_taken).nonzero().squeeze(1);
  for (auto& column : columns) {
    if (column.numbers.defined()) column.numbers = column.numbers.index_select(0, places);
    if (column.exact.defined()) column.exact = column.exact.index_select(0, places);
    if (!column.texts.empty()) keep_rows(column.texts, is_taken);
  }
  add_class_notices(columns, notice);
  notes.insert(notes.begin(), notice);
  return {std::move(table), std::move(columns), joined_notices(notes), std::move(rows), count};
}

/// A table in a CSV file (RFC 4180, plain or gzip) whose first line names the columns. One row is
/// one example. A column's name is its key; a slash in it nests.
///
/// With `decimal` = "," numbers are such as 1.234,56. `columns` is a map from a column to its type,
/// or to `{type: ..., key: ...}` to give it another key:
///
///     columns: {file: {type: image, key: image}, label: {type: class, key: class}, name: text}
///
/// The types: `int`, an int64 []; `float`, a float []; `text`; `class`, an int64 [] by
/// ClassNumbers, which in the training is the text's place among all texts of the column, sorted,
/// or in the list `classes` (with `unknown: id` any other text gets the number behind these);
/// `image`, the path of a PNG or JPEG relative to the CSV file, read as float [C, H, W] in [-1, 1];
/// `mask`, that of a PNG of class numbers, int64 [H, W], as in read_mask; `skip`. A column that is
/// not listed is int, float or text, whichever fits all cells that are not missing. A column
/// without a name, such as the index that pandas writes, is left out.
///
/// In a column of numbers, a cell is missing when it is empty, NA, NaN, null or None; in a column
/// of classes or images, when it is empty. `missing` says how missing cells are handled: `error`,
/// the default; `drop`, which leaves out the row, so that `index` counts the remaining rows; `nan`;
/// `mean` or `median` of the training rows; or a map from a column to one of these or to the value
/// to read instead: {age: 0, income: median}. An empty text counts as missing only where that map
/// names its column. With `masks: true` each filled column also gives a bool [], `<key>_missing`.
///
/// `vectors`: {x: [age, income], y: [price]} puts columns of numbers side by side, float [columns].
///
/// `folds: 5, fold: 2` takes the rows outside fold 2, or with `part: validation` the rows in it.
/// `fit: train` takes everything that is not given from the Csv of the train split: its parameters,
/// means and medians, and classes. `fills` and `classes` keep these values in a run's config; see
/// fitted.h.
///
/// Throws Error with file, line and column for a cell of another type and for a missing image, with
/// the columns for missing values, and when there are no rows.
class Csv : public Dataset, public KeepsFloat64 {
 public:
  struct Params {
    CsvRows rows;
    ImageOptions images;

    void declare(Parameters& p);
  };

  Csv(Params params, const Config& config)
      : reader_(params.images),
        table_(std::move(params.rows.table)),
        columns_(std::move(params.rows.columns)),
        notice_(std::move(params.rows.notice)),
        params_(config) {
    for (const auto& column : columns_) {
      has_images_ = has_images_ || is_picture(column);
    }
    const std::vector<int64_t>& rows = params.rows.rows;
    if (static_cast<int64_t>(rows.size()) == params.rows.count) return;  // the index is the row
    at::Tensor places = at::empty({size()}, at::kLong);
    std::copy(rows.begin(), rows.end(), places.mutable_data_ptr<int64_t>());
    source_rows_ = {places, params.rows.count};
  }

  int64_t size() const override { return static_cast<int64_t>(table_.lines.size()); }

  Example get(int64_t index, Random& /*random*/) const override {
    check_index(index, size());
    const auto row = static_cast<size_t>(index);
    Example example;
    for (const auto& column : columns_) {
      if (column.type == CsvType::kText) {
        example.texts.set(column.key, column.texts[row]);
      } else if (is_picture(column)) {
        example.tensors.set(column.key, read_image_of(column, row));
      } else {
        example.tensors.set(column.key, column.numbers.select(0, index).clone());
      }
    }
    return example;
  }

  /// Gathers the whole batch at once unless there are images to read.
  std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                 std::span<Random> /*randoms*/) const override {
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

  /// The values of an int, float or class column, [size()].
  at::Tensor labels(std::string_view key) const override {
    for (const auto& column : columns_) {
      if (column.key == key) return column.numbers;
    }
    return {};
  }

  std::vector<std::string> label_keys() const override {
    std::vector<std::string> keys;
    for (const auto& column : columns_) {
      if (column.numbers.defined()) keys.push_back(column.key);
    }
    return keys;
  }

  std::optional<SourceRows> source_rows() const override { return source_rows_; }

  bool keep_float64(std::string_view key) override {
    const auto column = std::ranges::find(columns_, key, &CsvColumn::key);
    if (column == columns_.end()) return false;
    if (column->exact.defined()) column->numbers = column->exact;
    return true;
  }

  std::string notice() const override {
    std::vector<std::string> notices = {notice_};
    for (const auto& column : columns_) {
      if (is_picture(column)) notices.push_back(reader_.notice("", column.texts));
      notices.push_back(rounding_of(column));
      if (column.type != CsvType::kInt) continue;
      notices.push_back(plain_numbers_notice(
          params_, column.key, fmt::format("columns: {{{}: class}} reads names", column.name)));
    }
    return joined_notices(notices);
  }

  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const override {
    return ImageReader::collate(examples, std::move(indices));
  }

 private:
  /// A warning when float32 loses digits that matter.
  std::string rounding_of(const CsvColumn& column) const {
    if (!column.exact.defined() || column.numbers.scalar_type() == at::kDouble) return {};
    return float32_notice(column.exact, table_.path, column.name, "the table");
  }

  static bool is_picture(const CsvColumn& column) {
    return column.type == CsvType::kImage || column.type == CsvType::kMask;
  }

  at::Tensor read_image_of(const CsvColumn& column, size_t row) const {
    try {
      const std::string& path = column.texts[row];
      return column.type == CsvType::kMask ? reader_.read_mask(path) : reader_.read(path);
    } catch (const Error& error) {
      throw Error(fmt::format("{}:{}: column \"{}\": {}", table_.path, table_.lines[row],
                              column.name, error.what()));
    }
  }

  ImageReader reader_;
  CsvTable table_;  ///< Path and lines only; the cells are in `columns_`.
  std::vector<CsvColumn> columns_;
  std::string notice_;
  Config params_;
  std::optional<SourceRows> source_rows_;
  bool has_images_ = false;
};

void Csv::Params::declare(Parameters& p) {
  const Config* config =
      p.describe_required("path", "path", "file whose first line names the columns");
  p.describe_optional(
      "columns", "map",
      "map from a column to its type (int, float, text, class, image, mask, skip), or to "
      "{type: ..., key: ..., classes: [...], unknown: id}; null: int, float or text, as the cells "
      "are");
  p.describe({.name = "missing",
              .default_value = "error",
              .about = "what to do with missing values: error; drop, to leave out the row; nan; "
                       "mean or median of the training rows; or a map from a column to one of "
                       "these or to the value to read instead, {age: 0}",
              .type = {.kind = "text | number | map"}});
  p.describe_optional("vectors", "map",
                      "map from a key to columns of numbers, which it has side by side");
  p.describe_optional("fit", "text",
                      "name of the split, such as train, whose Csv gives what is not given here, "
                      "with its means, medians and classes");
  p.describe_optional("fills", "map", "fitted: the means and medians of the training rows");
  p.describe_optional("classes", "map",
                      "fitted, in configs of 0.1.0: the texts of the training rows");
  p.describe({.name = "separator",
              .default_value = "\",\"",
              .about = "one character",
              .type = {.kind = "text"}});
  p.describe({.name = "decimal",
              .default_value = "\".\"",
              .about = "\",\": numbers have a decimal comma, and points between thousands",
              .type = {.kind = "text", .choices = {".", ","}}});
  std::vector<std::string> absent;
  CsvTable table;
  // The Csv of the split `fit` gives parameters that follow.
  if (config != nullptr) table = read_csv_table(*config, absent);
  bool masks = false;
  p.add("masks", masks, "true: a bool <key>_missing beside each column that is filled");
  CsvFoldOptions folds;
  folds.declare(p);
  images.declare(p);
  if (config != nullptr) rows = read_rows(std::move(table), absent, folds, masks, *config);
}

STEPOP_REGISTER_DATASET(Csv,
                        {"A table in a CSV file whose columns are values or paths of images."});

}  // namespace
}  // namespace stepop
