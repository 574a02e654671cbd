#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/nearest.h"
#include "runtime/core/base/text.h"
#include "runtime/core/formats/npy_file.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/data/class_numbers.h"
#include "runtime/data/dataset.h"
#include "runtime/data/datasets/tables/float32_loss.h"
#include "runtime/data/keeps_float64.h"
#include "runtime/data/notice.h"

namespace stepop {
namespace {

/// Larger labels are not read at once.
constexpr int64_t kMostLabelBytes = 64'000'000;

/// One key of the examples and the array that it is read from.
struct NpyColumn {
  std::string key;
  StoredArray array;
  bool is_image = false;
  bool keeps_float64 = false;

  bool is_text() const { return array.type().is_text(); }
};

std::string stem_of(const std::string& path) { return std::filesystem::path(path).stem().string(); }

/// Opens the arrays of `files: {image: images.npy}`, or of the file at `path`.
std::vector<NpyColumn> open_files(const Config& params) {
  std::vector<NpyColumn> columns;
  if (params.has("path")) {
    if (params.has("files")) throw params.error("files", "\"path\" is given as well");
    const std::string path = get_file(params, "path");
    if (!path.ends_with(".npz")) return {{stem_of(path), open_npy(path)}};
    for (auto& [name, array] : open_npz(path)) columns.push_back({name, std::move(array)});
    if (columns.empty()) throw Error(path + ": holds no arrays");
    return columns;
  }
  const auto files = params.get<Value>("files");
  if (!files.is_map() || files.as_map().empty()) {
    throw params.error("files",
                       "expected a map from keys to .npy files, found " + files.describe());
  }
  for (const auto& [key, value] : files.as_map()) {
    columns.push_back({key, open_npy(get_file(params, join_path("files", key)))});
  }
  return columns;
}

/// The columns that the parameter `keys`, a map from keys to arrays, selects.
std::vector<NpyColumn> chosen(const std::vector<NpyColumn>& columns, const Config& params) {
  const auto keys = params.get<Value>("keys");
  if (!keys.is_map()) {
    throw params.error(
        "keys", "expected a map from keys to arrays, {image: x_train}, found " + keys.describe());
  }
  std::vector<std::string> names;
  for (const auto& column : columns) names.push_back(column.key);
  std::vector<NpyColumn> result;
  for (const auto& [key, value] : keys.as_map()) {
    const std::string name = value.is_text() ? value.as_text() : "";
    const auto found = std::ranges::find(columns, name, &NpyColumn::key);
    if (found == columns.end()) {
      throw params.error(join_path("keys", key),
                         fmt::format("no array {}; there are: {}", value.describe(),
                                     list_text(sorted_by_distance(name, names))));
    }
    result.push_back({key, found->array});
  }
  return result;
}

bool is_image_shape(const StoredArray& array) {
  const size_t dims = array.shape().size();
  return array.type().kind == 'u' && array.type().size == 1 && (dims == 3 || dims == 4);
}

/// uint8 [B, H, W], [B, H, W, C] or [B, C, H, W] as float [B, C, H, W] in [-1, 1].
at::Tensor images_of(const at::Tensor& bytes) {
  const auto is_channels = [](int64_t count) { return count == 1 || count == 3 || count == 4; };
  at::Tensor images = bytes.dim() == 3 ? bytes.unsqueeze(1) : bytes;
  if (bytes.dim() == 4 && is_channels(bytes.size(3))) images = bytes.permute({0, 3, 1, 2});
  return from_stored_image(images.contiguous());
}

/// Arrays in NumPy's files, side by side: row i of each array belongs to example i. Rows are read
/// on demand, so the files may be larger than memory.
///
/// Images are uint8 [N, H, W], [N, H, W, C] or [N, C, H, W] in the file.
///
/// Numbers keep their type, except that unsigned integers of more than a byte become signed (uint16
/// becomes int32, uint32 and uint64 become int64). Texts [N] are texts. Throws Error with the file
/// for anything else, such as pickled objects, and when the arrays differ in their first dimension.
class Npy : public Dataset, public KeepsFloat64 {
 public:
  struct Params {
    std::vector<NpyColumn> columns;
    std::vector<std::string> images = {};
    bool float64 = false;

    void declare(Parameters& p);
  };

  Npy(const Params& params, const Config& config)
      : params_(config), columns_(params.columns), keeps_float64_(params.float64) {
    for (const auto& column : columns_) check(column, config);
    size_ = columns_[0].array.rows();
    if (size_ == 0) throw Error(columns_[0].array.name() + ": holds no examples");
    for (const auto& key : params.images) {
      const auto column = std::ranges::find(columns_, key, &NpyColumn::key);
      if (column == columns_.end()) {
        std::vector<std::string> keys;
        for (const auto& each : columns_) keys.push_back(each.key);
        throw config.error(
            "images", fmt::format("there is no key \"{}\"; there are: {}", key, list_text(keys)));
      }
      if (!is_image_shape(column->array)) {
        throw config.error("images",
                           fmt::format("{}: expected uint8 [N, H, W], [N, H, W, C] or [N, "
                                       "C, H, W], found {}",
                                       column->array.name(), column->array.describe()));
      }
      column->is_image = true;
    }
  }

  int64_t size() const override { return size_; }

  Example get(int64_t index, Random& /*random*/) const override {
    check_index(index, size_);
    const std::span<const int64_t> rows(&index, 1);
    Example example;
    for (const auto& column : columns_) {
      if (column.is_text()) {
        example.texts.set(column.key, column.array.gather_texts(rows)[0]);
      } else {
        example.tensors.set(column.key, read(column, rows).squeeze(0));
      }
    }
    return example;
  }

  std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                 std::span<Random> /*randoms*/) const override {
    for (const int64_t index : indices) check_index(index, size_);
    OrderedMap<at::Tensor> tensors;
    OrderedMap<std::vector<std::string>> texts;
    for (const auto& column : columns_) {
      if (column.is_text()) {
        texts.set(column.key, column.array.gather_texts(indices));
      } else {
        tensors.set(column.key, read(column, indices));
      }
    }
    return Batch(std::move(tensors), std::move(texts), {indices.begin(), indices.end()});
  }

  /// The values of an array of numbers of up to 64 MB, [size(), ...].
  at::Tensor labels(std::string_view key) const override {
    for (const auto& column : columns_) {
      if (column.key == key && is_label(column)) return finished(column, column.array.all());
    }
    return {};
  }

  std::vector<std::string> label_keys() const override {
    std::vector<std::string> keys;
    for (const auto& column : columns_) {
      if (is_label(column)) keys.push_back(column.key);
    }
    return keys;
  }

  bool keep_float64(std::string_view key) override {
    const auto column = std::ranges::find(columns_, key, &NpyColumn::key);
    if (column == columns_.end()) return false;
    column->keeps_float64 = true;
    return true;
  }

  std::string notice() const override {
    std::vector<std::string> notices;
    for (const auto& column : columns_) {
      notices.push_back(rounding_of(column));
      const bool is_whole = column.array.type().kind == 'i' || column.array.type().kind == 'u';
      if (is_whole) notices.push_back(plain_numbers_notice(params_, column.key));
    }
    return joined_notices(notices);
  }

 private:
  void check(const NpyColumn& column, const Config& params) const {
    const StoredArray& array = column.array;
    if (column.key == "index") {
      throw params.error("", array.name() +
                                 ": needs another key, as \"index\" is each example's "
                                 "place in the dataset: keys: {row: index}");
    }
    const size_t dims = array.shape().size();
    if (dims == 0 || (column.is_text() && dims > 1)) {
      throw Error(
          fmt::format("{}: {} cannot be split into examples; numbers are [N, ...], texts [N]"
                      "{}",
                      array.name(), array.describe(),
                      params.has("path") ? "; choose others with keys: {x: x}" : ""));
    }
    if (array.rows() == columns_[0].array.rows()) return;
    throw Error(fmt::format(
        "{} and {} differ in their first dimension, the number of examples: {} "
        "and {}{}",
        columns_[0].array.name(), array.name(), columns_[0].array.describe(), array.describe(),
        params.has("path") ? "; choose some with keys: {x: x_train}" : ""));
  }

  bool is_label(const NpyColumn& column) const {
    return !column.is_text() && !column.is_image && column.array.bytes() <= kMostLabelBytes;
  }

  at::Tensor read(const NpyColumn& column, std::span<const int64_t> rows) const {
    return finished(column, column.array.gather(rows));
  }

  at::Tensor finished(const NpyColumn& column, const at::Tensor& rows) const {
    if (column.is_image) return images_of(rows);
    const bool is_rounded = rows.scalar_type() == at::kDouble && !is_kept(column);
    return is_rounded ? rows.to(at::kFloat) : rows;
  }

  bool is_kept(const NpyColumn& column) const { return keeps_float64_ || column.keeps_float64; }

  /// A warning when float32 loses digits that matter, by rows from all over the array.
  std::string rounding_of(const NpyColumn& column) const {
    const StoredArray& array = column.array;
    constexpr int64_t kMostRows = 1000;
    constexpr int64_t kMostNumbers = 1000;  // of a row
    if (array.type().kind != 'f' || array.type().size != sizeof(double) || is_kept(column)) {
      return {};
    }
    const auto& shape = array.shape();
    if (shape.size() > 2 || (shape.size() == 2 && shape[1] > kMostNumbers)) return {};
    std::vector<int64_t> rows(static_cast<size_t>(std::min(size_, kMostRows)));
    const auto count = static_cast<int64_t>(rows.size());
    for (int64_t i = 0; i < count; ++i) rows[static_cast<size_t>(i)] = i * size_ / count;
    return float32_notice(array.gather(rows), array.name(), column.key, "the array");
  }

  Config params_;
  std::vector<NpyColumn> columns_;
  bool keeps_float64_;
  int64_t size_ = 0;
};

void Npy::Params::declare(Parameters& p) {
  const Config* config = p.describe({.name = "files",
                                     .default_value = "none",
                                     .about = "map from keys to .npy files, {image: images.npy}",
                                     .is_path = true,
                                     .type = {.kind = "map"}});
  p.describe_optional("path", "path", "instead: an .npz, or one .npy");
  if (config != nullptr) columns = open_files(*config);
  config = p.describe_optional(
      "keys", "map", "map from a key to an array, {image: x_train}; null: all by their names");
  if (config != nullptr) columns = chosen(columns, *config);
  p.add("images", images, "keys of uint8 arrays that are images, float [C, H, W] in [-1, 1]");
  p.add("float64", float64, "true: kept; else they are read as float32");
}

STEPOP_REGISTER_DATASET(Npy, {"Arrays [N, ...] in files of NumPy, .npy or .npz."});

}  // namespace
}  // namespace stepop
