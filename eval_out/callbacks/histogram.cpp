#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "eval_out/callbacks/callback.h"
#include "eval_out/callbacks/evaluation_callbacks.h"
#include "eval_out/callbacks/row_values.h"
#include "runtime/core/base/json_text.h"
#include "runtime/core/pictures/axes.h"
#include "runtime/core/pictures/histogram.h"
#include "runtime/core/system/atomic_file.h"

namespace stepop {
namespace {

/// The result of one pass over the numbers; infinite numbers and NaN are only counted.
struct Moments {
  int64_t count = 0;
  int64_t nan = 0;
  int64_t infinite = 0;
  double mean = 0;
  double squares = 0;  ///< The sum of the squared distances to the mean.
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();

  /// `values` is float64.
  void add(const at::Tensor& values) {
    const at::Tensor finite = values.masked_select(at::isfinite(values));
    const auto is_nan = at::isnan(values).sum().item<int64_t>();
    nan += is_nan;
    infinite += values.numel() - finite.numel() - is_nan;
    if (finite.numel() == 0) return;
    const auto before = static_cast<double>(count);
    const auto more = static_cast<double>(finite.numel());
    const auto block_mean = finite.mean().item<double>();
    const double step = block_mean - mean;
    mean += step * more / (before + more);
    squares += finite.sub(block_mean).square().sum().item<double>() +
               step * step * before * more / (before + more);
    min = std::min(min, finite.min().item<double>());
    max = std::max(max, finite.max().item<double>());
    count += finite.numel();
  }
};

/// Visits the numbers of all rows whose weight is not 0, block by block.
template <class Look>
void for_all_numbers(const RowValues& values, const Look& look) {
  for_each_block(values.rows(), values.rows_per_block(), [&](int64_t first, int64_t count) {
    at::Tensor numbers = values.read(first, count).to(at::kDouble);
    const at::Tensor counting = values.read_counting(first, count);
    if (counting.defined()) numbers = numbers.index_select(0, counting.nonzero().squeeze(1));
    look(numbers.reshape({-1}));
  });
}

struct HistogramParams {
  std::string of = "loss";
  int64_t bins = 50;
  std::optional<std::vector<double>> range;

  void declare(Parameters& p) {
    p.add("of", of, "the key of the numbers, in the outputs, the labels or the dataset");
    p.add("bins", bins, "how many ranges of equal width they are counted in",
          at_least(1).at_most(10'000));
    p.add("range", range, "[low, high] of the bins, by default from the smallest to the largest");
  }
};

/// The parameter `range`, or else the range of the numbers.
std::pair<double, double> range_of(const Config& config, const HistogramParams& params,
                                   const RowValues& values, const Moments& moments) {
  const int64_t bins = params.bins;
  if (!params.range) {
    if (!std::isfinite(moments.max - moments.min)) {
      throw Error(
          fmt::format("{} goes from {} to {}, too far for bins of equal width; give a "
                      "\"range\"",
                      values.name(), moments.min, moments.max));
    }
    return range_with_room(moments.min, moments.max, bins);
  }
  const auto& range = *params.range;
  if (range.size() != 2 || !(range[0] < range[1]) || !std::isfinite(range[1] - range[0])) {
    throw config.error("range", "expected two numbers, the smaller one first, such as [0, 1]");
  }
  if (range_with_room(range[0], range[1], bins) != std::pair{range[0], range[1]}) {
    throw config.error("range", fmt::format("is too narrow for {} bins", bins));
  }
  return {range[0], range[1]};
}

std::string to_json(const Histogram& histogram, const Moments& moments) {
  nlohmann::ordered_json json;
  json["key"] = histogram.key;
  json["edges"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i <= histogram.counts.size(); ++i) json["edges"].push_back(histogram.edge(i));
  json["counts"] = histogram.counts;
  json["below"] = histogram.below;
  json["above"] = histogram.above;
  json["nan"] = moments.nan;
  json["infinite"] = moments.infinite;
  return write_json(json) + "\n";
}

Logs histogram(const CallbackArguments& arguments, const HistogramParams& params) {
  const RowValues values(arguments, params.of, "of", RowValues::From::kFileOrDataset);
  if (c10::isComplexType(values.dtype())) throw Error(values.name() + " holds complex numbers");
  Moments moments;
  for_all_numbers(values, [&](const at::Tensor& numbers) { moments.add(numbers); });
  if (moments.count + moments.nan + moments.infinite == 0) {
    throw NoNumbers(values.name() + " has the weight 0 in every row");
  }
  if (moments.count == 0) {
    throw Error(fmt::format("{} has no finite number: {} are NaN, {} infinite", values.name(),
                            moments.nan, moments.infinite));
  }
  const auto [low, high] = range_of(arguments.params, params, values, moments);
  Histogram found{values.name(), low, high,
                  std::vector<int64_t>(static_cast<size_t>(params.bins), 0)};
  for_all_numbers(values, [&](const at::Tensor& numbers) { found.add(numbers); });

  write_file_atomically(arguments.path_of("counts.json"), to_json(found, moments));
  write_file_atomically(arguments.path_of("histogram.png"), histogram_picture(found));
  Logs logs;
  logs.scalars.set("mean", moments.mean);
  logs.scalars.set("std", std::sqrt(moments.squares / static_cast<double>(moments.count)));
  logs.scalars.set("min", moments.min);
  logs.scalars.set("max", moments.max);
  logs.scalars.set("non_finite", found.non_finite);
  return logs;
}

STEPOP_REGISTER_CALLBACK(
    histogram, histogram,
    {"How often which numbers occur in a label or an output, as a picture and counts."});
STEPOP_CALLBACK_KEYS(histogram, {"of"});

}  // namespace
}  // namespace stepop
