#include <ATen/ops/argmax.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "eval_out/callbacks/evaluation_callbacks.h"
#include "eval_out/callbacks/row_values.h"
#include "eval_out/hdf5/hdf5_values.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/formats/csv_file.h"
#include "runtime/core/pictures/image_grid.h"
#include "runtime/core/system/atomic_file.h"

namespace stepop {
namespace {

struct ExampleParams {
  std::string image = "image";
  std::string by = "loss";
  std::string mode = "min";
  int64_t count = 16;
  std::vector<std::string> show;
  int64_t seed = 1;

  void declare(Parameters& p) {
    p.add("image", image, "the key of the images, in the outputs or the dataset");
    p.add("by", by, "the key of the number that says which are good");
    p.add("mode", mode, "min: the smallest is the best; max: the largest", one_of({"min", "max"}));
    p.add("count", count, "how many examples a picture has", at_least(1).at_most(400));
    p.add("show", show, "more keys to write below an image; of a vector, the place of its largest");
    p.add("seed", seed, "which random ones", at_least(0));
  }
};

struct ExampleRow {
  int64_t row;
  double value;
};

enum class NaNs { kFirst, kLeftOut };

/// Collects, in one pass over the rows, the `count` rows with the smallest or the largest values.
/// Among equal values, earlier rows come first.
class FirstRows {
 public:
  FirstRows(size_t count, bool ascending, NaNs nans)
      : count_(count), ascending_(ascending), nans_(nans) {}

  void add(ExampleRow row) {
    if (std::isnan(row.value) && nans_ == NaNs::kLeftOut) return;
    if (rows_.size() == count_ && !is_before(row, rows_.back())) return;
    const auto place =
        std::upper_bound(rows_.begin(), rows_.end(), row,
                         [&](const ExampleRow& a, const ExampleRow& b) { return is_before(a, b); });
    rows_.insert(place, row);
    if (rows_.size() > count_) rows_.pop_back();
  }
  const std::vector<ExampleRow>& rows() const { return rows_; }

 private:
  bool is_before(const ExampleRow& a, const ExampleRow& b) const {
    if (std::isnan(a.value) || std::isnan(b.value)) {
      return std::isnan(a.value) && !std::isnan(b.value);
    }
    return ascending_ ? a.value < b.value : a.value > b.value;
  }

  size_t count_;
  bool ascending_;
  NaNs nans_;
  std::vector<ExampleRow> rows_;
};

/// A random choice in which each row has the same chance (Vitter's algorithm R), in the order of
/// the rows.
class RandomRows {
 public:
  RandomRows(size_t count, uint64_t seed) : count_(count), random_(seed) {}

  void add(ExampleRow row) {
    ++seen_;
    if (rows_.size() < count_) {
      rows_.push_back(row);
    } else if (const auto place = static_cast<size_t>(random_.below(seen_)); place < count_) {
      rows_[place] = row;
    }
  }
  std::vector<ExampleRow> rows() const {
    std::vector<ExampleRow> sorted = rows_;
    std::sort(sorted.begin(), sorted.end(),
              [](const ExampleRow& a, const ExampleRow& b) { return a.row < b.row; });
    return sorted;
  }

 private:
  size_t count_;
  Random random_;
  int64_t seen_ = 0;
  std::vector<ExampleRow> rows_;
};

struct ChosenRows {
  std::vector<ExampleRow> best;
  std::vector<ExampleRow> worst;
  std::vector<ExampleRow> random;
};

/// Chooses rows by value. NaN is worse than any number, and never among the best; a row of weight 0
/// has no value, and is none of these.
ChosenRows choose(const RowValues& by, size_t count, bool least_is_best, uint64_t seed) {
  FirstRows best(count, least_is_best, NaNs::kLeftOut);
  FirstRows worst(count, !least_is_best, NaNs::kFirst);
  RandomRows random(count, mix_seed({seed, seed_of("examples")}));
  bool is_empty = true;
  for_each_block(by.rows(), by.rows_per_block(), [&](int64_t first, int64_t rows) {
    const at::Tensor values = by.read(first, rows).to(at::kDouble).contiguous();
    const at::Tensor counting = by.read_counting(first, rows);
    for (int64_t i = 0; i < rows; ++i) {
      if (counting.defined() && !counting.const_data_ptr<bool>()[i]) continue;
      is_empty = false;
      const ExampleRow row{first + i, values.const_data_ptr<double>()[i]};
      best.add(row);
      worst.add(row);
      random.add(row);
    }
  });
  if (is_empty) throw NoNumbers(by.name() + " has the weight 0 in every row");
  if (best.rows().empty()) {
    throw Error(fmt::format("{} has a NaN in each of its {} rows", by.name(), by.rows()));
  }
  return {best.rows(), worst.rows(), random.rows()};
}

/// The text of a value, `class 9`; for a vector, the place of its largest number, `logits 4`.
std::string value_text(const RowValues& values, const std::string& key, int64_t row) {
  const at::Tensor value = values.read(row, 1)[0];
  const auto number = value.dim() == 1 ? static_cast<double>(at::argmax(value).item<int64_t>())
                                       : value.to(at::kDouble).item<double>();
  return fmt::format("{} {}", key, short_number(number));
}

/// The values that the parameters request, found in the file and the dataset.
struct Sources {
  using From = RowValues::From;

  Sources(const CallbackArguments& arguments, const ExampleParams& params)
      : file(arguments.data_out),
        by_key(params.by),
        images(arguments, params.image, "image", From::kFileOrDataset),
        by(arguments, by_key, "by", From::kFileOrDataset),
        shown_keys(params.show) {
    check_images(images, Channels::kAny);
    if (!by.shape().empty() || c10::isComplexType(by.dtype())) {
      throw Error(fmt::format("{} must hold one number an example to sort them by, found {}",
                              by.name(), shape_text(by.shape())));
    }
    for (const auto& key : shown_keys) {
      const RowValues& values = shown.emplace_back(arguments, key, "show", From::kFileOrDataset);
      if (values.shape().size() > 1 || c10::isComplexType(values.dtype())) {
        throw Error(
            fmt::format("{} must hold one number an example, or a vector, to be shown; "
                        "found {}",
                        values.name(), shape_text(values.shape())));
      }
    }
  }

  std::string grid(const std::vector<ExampleRow>& rows) const {
    std::vector<CaptionedImage> pictures;
    for (const ExampleRow& row : rows) {
      file.throw_if_interrupted();
      CaptionedImage& picture = pictures.emplace_back();
      picture.image = thumbnail(to_images(images.read(row.row, 1)));
      picture.lines = {fmt::format("#{}", file.index(row.row, 1).item<int64_t>()),
                       fmt::format("{} {}", by_key, short_number(row.value))};
      for (size_t i = 0; i < shown.size(); ++i) {
        picture.lines.push_back(value_text(shown[i], shown_keys[i], row.row));
      }
    }
    return captioned_grid(pictures);
  }

  const EvalFile& file;
  std::string by_key;
  RowValues images;
  RowValues by;
  std::vector<std::string> shown_keys;
  std::vector<RowValues> shown;
};

Logs examples(const CallbackArguments& arguments, const ExampleParams& params) {
  const Sources sources(arguments, params);
  const ChosenRows chosen = choose(sources.by, static_cast<size_t>(params.count),
                                   params.mode == "min", static_cast<uint64_t>(params.seed));
  std::string table = fmt::format("set,index,{}\n", csv_cell(sources.by_key));
  for (const auto& [name, rows] :
       {std::pair{"best", &chosen.best}, std::pair{"worst", &chosen.worst},
        std::pair{"random", &chosen.random}}) {
    write_file_atomically(arguments.path_of(fmt::format("{}.png", name)), sources.grid(*rows));
    for (const ExampleRow& row : *rows) {
      const auto index = arguments.data_out.index(row.row, 1).item<int64_t>();
      table += fmt::format("{},{},{}\n", name, index, row.value);
    }
  }
  write_file_atomically(arguments.path_of("examples.csv"), table);
  Logs logs;
  logs.scalars.set("best", chosen.best.front().value);
  logs.scalars.set("worst", chosen.worst.front().value);
  return logs;
}

STEPOP_REGISTER_CALLBACK(
    examples, examples,
    {"Pictures of the best, the worst and random examples by a label; NaN is the worst."});
STEPOP_CALLBACK_KEYS(examples, {"image"}, {"by"}, {"show"});

}  // namespace
}  // namespace stepop
