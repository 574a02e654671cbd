#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "eval_out/callbacks/histogram_picture.h"
#include "eval_out/callbacks/row_values.h"
#include "runtime/system/atomic_file.h"

namespace stepop {
namespace {

constexpr int64_t kMostBins = 10'000;

/// What one pass over the numbers tells; infinite ones and NaN are only counted.
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

/// Looks at all numbers, block by block.
template <class Look>
void for_all_numbers(const RowValues& values, const Look& look) {
  for_each_block(values.rows(), values.rows_per_block(), [&](int64_t first, int64_t count) {
    look(values.read(first, count).to(at::kDouble).reshape({-1}));
  });
}

/// A range around the middle of one that is too narrow for bins: of width 1 as in numpy, and wide
/// enough for numbers so large that those that are 1 apart are the same.
std::pair<double, double> widened(double low, double high) {
  const double room = std::max(0.5, std::abs(low) * 1e-9);
  constexpr double kLargest = std::numeric_limits<double>::max();
  return {std::max(low - room, -kLargest), std::min(high + room, kLargest)};
}

/// Whether numbers lie in each of the bins.
bool has_room(double low, double high, int64_t bins) {
  const double width = (high - low) / static_cast<double>(bins);
  return low + width > low && high - width < high;
}

/// The parameter `range`, else that of the numbers.
std::pair<double, double> range_of(const Config& params, const RowValues& values,
                                   const Moments& moments, int64_t bins) {
  if (!params.has("range")) {
    if (!std::isfinite(moments.max - moments.min)) {
      throw Error(
          fmt::format("{} goes from {} to {}, too far for bins of equal width; give a "
                      "\"range\"",
                      values.name(), moments.min, moments.max));
    }
    return has_room(moments.min, moments.max, bins) ? std::pair{moments.min, moments.max}
                                                    : widened(moments.min, moments.max);
  }
  const auto range = params.get<std::vector<double>>("range");
  if (range.size() != 2 || !(range[0] < range[1]) || !std::isfinite(range[1] - range[0])) {
    throw params.error("range", "expected two numbers, the smaller one first, such as [0, 1]");
  }
  if (!has_room(range[0], range[1], bins)) {
    throw params.error("range", fmt::format("is too narrow for {} bins", bins));
  }
  return {range[0], range[1]};
}

/// Of the numbers that lie in the bins; the last bin has both of its ends, as in numpy.
void count_into(Histogram& histogram, const at::Tensor& numbers) {
  const double low = histogram.low;
  const double high = histogram.high;
  histogram.below += numbers.lt(low).sum().item<int64_t>();
  histogram.above += numbers.gt(high).sum().item<int64_t>();
  const size_t last = histogram.counts.size() - 1;
  const auto bins = static_cast<double>(histogram.counts.size());
  const at::Tensor all = numbers.contiguous();
  const auto* values = all.const_data_ptr<double>();
  for (int64_t i = 0; i < all.numel(); ++i) {
    const double value = values[i];
    if (value < low || value > high) continue;
    size_t bin = std::min(static_cast<size_t>((value - low) / (high - low) * bins), last);
    // Rounding may have carried it over an edge.
    if (value < histogram.edge(bin)) --bin;
    if (bin < last && value >= histogram.edge(bin + 1)) ++bin;
    ++histogram.counts[bin];
  }
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
  return json.dump() + "\n";
}

Logs histogram(const CallbackArguments& arguments) {
  const Config& params = arguments.params;
  const auto key = params.get("of", "loss");
  const RowValues values(arguments, key, "of", RowValues::From::kFileOrDataset);
  if (c10::isComplexType(values.dtype())) throw Error(values.name() + " holds complex numbers");
  const int64_t bins = params.get_at_least("bins", 1, 50);
  if (bins > kMostBins)
    throw params.error("bins", fmt::format("expected {} or less, found {}", kMostBins, bins));

  Moments moments;
  for_all_numbers(values, [&](const at::Tensor& numbers) { moments.add(numbers); });
  if (moments.count == 0) {
    throw Error(fmt::format("{} has no finite number: {} are NaN, {} infinite", values.name(),
                            moments.nan, moments.infinite));
  }
  const auto [low, high] = range_of(params, values, moments, bins);
  Histogram found{values.name(), low, high, std::vector<int64_t>(static_cast<size_t>(bins), 0)};
  found.non_finite = moments.nan + moments.infinite;
  for_all_numbers(values, [&](const at::Tensor& numbers) {
    count_into(found, numbers.masked_select(at::isfinite(numbers)));
  });

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
    {"How often which numbers occur in a label or an output, as a picture and counts.",
     {{"of", "loss", "the key of the numbers, in the outputs, the labels or the dataset"},
      {"bins", "50", "how many ranges of equal width they are counted in"},
      {"range", "null", "[low, high] of the bins, by default from the smallest to the largest"}}});

}  // namespace
}  // namespace stepop
