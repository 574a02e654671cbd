#include "runtime/tools/report/worst_examples.h"

#include <ATen/ops/argmax.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "eval_out/datasets/stored_class_names.h"
#include "eval_out/hdf5/hdf5_values.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/core/pictures/image_grid.h"

namespace stepop {
namespace {

constexpr size_t kMostKeys = 8;
constexpr size_t kMostPictureKeys = 4;
constexpr size_t kMostExampleTextBytes = 500;

bool is_one_number(const EvalArray& array) {
  if (array.kind != EvalKind::kTensor || c10::isComplexType(array.dtype)) return false;
  return std::all_of(array.shape.begin(), array.shape.end(), [](int64_t n) { return n == 1; });
}

bool is_distribution(const EvalArray& array) {
  const bool is_vector = array.kind == EvalKind::kTensor && array.shape.size() == 1 &&
                         array.shape[0] > 1 && !c10::isComplexType(array.dtype);
  const auto has = [&](std::string_view word) { return array.key.find(word) != std::string::npos; };
  return is_vector && (has("logits") || has("scores") || has("prob"));
}

bool is_side(int64_t length) { return length >= 8 && length <= 512; }
bool is_channels(int64_t length) { return length == 1 || length == 3; }

bool is_channels_first(const EvalArray& array) {
  return array.shape.size() == 3 && is_channels(array.shape[0]) && is_side(array.shape[1]) &&
         is_side(array.shape[2]);
}

bool is_picture(const EvalArray& array) {
  const bool is_type = array.dtype == at::kByte || c10::isFloatingType(array.dtype);
  const bool is_channels_last = array.shape.size() == 3 && is_channels(array.shape[2]) &&
                                is_side(array.shape[0]) && is_side(array.shape[1]);
  return array.kind == EvalKind::kTensor && is_type &&
         (is_channels_first(array) || is_channels_last);
}

std::string find_loss(const EvalFile& file) {
  for (const std::string_view word : {"loss", "error"}) {
    for (const EvalArray& array : file.arrays()) {
      const bool is_label = array.key.starts_with("labels/") && is_one_number(array);
      if (is_label && array.key.find(word) != std::string::npos) return array.key;
    }
  }
  return "";
}

struct Row {
  int64_t row;
  double loss;
};

bool is_worse(const Row& a, const Row& b) {
  if (std::isnan(a.loss) != std::isnan(b.loss)) return std::isnan(a.loss);
  return a.loss != b.loss && !std::isnan(a.loss) ? a.loss > b.loss : a.row < b.row;
}

std::vector<Row> worst_rows(const EvalFile& file, const std::string& key, size_t count) {
  std::vector<Row> worst;
  for_each_block(file.rows(), file.rows_per_block(key), [&](int64_t first, int64_t rows) {
    const at::Tensor losses =
        file.read(key, first, rows).to(at::kDouble).reshape({-1}).contiguous();
    const auto* values = losses.const_data_ptr<double>();
    const at::Tensor counting = file.read_counting(key, first, rows);
    for (int64_t i = 0; i < losses.numel(); ++i) {
      if (counting.defined() && !counting.const_data_ptr<bool>()[i]) continue;
      const Row row{first + i, values[i]};
      if (worst.size() == count && !is_worse(row, worst.back())) continue;
      if (worst.size() == count) worst.pop_back();
      worst.insert(std::upper_bound(worst.begin(), worst.end(), row, is_worse), row);
    }
  });
  return worst;
}

using ClassNames = OrderedMap<std::vector<std::string>>;

/// The name of an array's class behind its number; empty when it has none.
std::string name_of(const ClassNames& names, const EvalArray& array, int64_t number) {
  const auto* found = names.find(array.key.substr(array.key.find('/') + 1));
  for (const auto& [key, of_key] : names) {  // scores have a key of their own
    const bool fits = is_distribution(array) && std::ssize(of_key) == array.shape[0];
    if (found == nullptr && fits) found = &of_key;
  }
  const bool is_named = found != nullptr && number >= 0 && number < std::ssize(*found);
  return is_named ? " " + (*found)[static_cast<size_t>(number)] : "";
}

std::string value_text(const EvalFile& file, const EvalArray& array, int64_t row,
                       const ClassNames& names) {
  if (array.kind == EvalKind::kText) {
    return shortened(file.read_texts(array.key, row, 1)[0], kMostExampleTextBytes, " ... (cut)");
  }
  const at::Tensor value = file.read(array.key, row, 1);
  if (is_distribution(array)) {
    const auto number = value.to(at::kDouble).reshape({-1}).argmax().item<int64_t>();
    return fmt::format("{}{}", number, name_of(names, array, number));
  }
  const bool is_whole = c10::isIntegralType(array.dtype, /*includeBool=*/false);
  return short_number(value.to(at::kDouble).item<double>()) +
         (is_whole ? name_of(names, array, value.item<int64_t>()) : "");
}

std::string picture_of(const EvalFile& file, const EvalArray& array, int64_t row) {
  at::Tensor picture = file.read(array.key, row, 1);
  const bool is_first = is_channels_first(array);
  if (array.dtype != at::kByte) {
    return image_grid_png(is_first ? picture : picture.permute({0, 3, 1, 2}));
  }
  picture = picture[0];
  return encode_png((is_first ? picture.permute({1, 2, 0}) : picture).contiguous());
}

}  // namespace

WorstExamples find_worst_examples(const EvalFile& file, size_t count, int64_t picture_bytes) {
  WorstExamples worst;
  worst.loss = find_loss(file);
  if (worst.loss.empty() || count == 0) return worst;
  for (const EvalArray& array : file.arrays()) {
    if (array.key == worst.loss) continue;
    if (is_picture(array)) {
      if (worst.picture_keys.size() < kMostPictureKeys) worst.picture_keys.push_back(array.key);
    } else if (is_one_number(array) || is_distribution(array) || array.kind == EvalKind::kText) {
      if (worst.keys.size() < kMostKeys) worst.keys.push_back(array.key);
    }
  }
  const at::Tensor index = file.index();
  const ClassNames names = stored_class_names(file);
  for (const Row& row : worst_rows(file, worst.loss, count)) {
    WorstExample example{.index = index[row.row].item<int64_t>(), .loss = row.loss};
    for (const auto& key : worst.keys) {
      example.values.push_back(value_text(file, file.array(key), row.row, names));
    }
    for (const auto& key : worst.picture_keys) {
      std::string picture = picture_of(file, file.array(key), row.row);
      if (static_cast<int64_t>(picture.size()) > picture_bytes) {
        picture.clear();
        ++worst.pictures_left_out;
      }
      picture_bytes -= static_cast<int64_t>(picture.size());
      example.pictures.push_back(std::move(picture));
    }
    worst.examples.push_back(std::move(example));
  }
  // The column's name states its content.
  for (auto& key : worst.keys) {
    if (is_distribution(file.array(key))) key.insert(0, "largest of ");
  }
  return worst;
}

}  // namespace stepop
