#include "eval_out/callbacks/histogram.h"

#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "eval_out/callbacks/row_values.h"
#include "runtime/base/number_text.h"
#include "runtime/pictures/canvas.h"
#include "runtime/system/atomic_file.h"

namespace stepop {
namespace {

constexpr int64_t kMostBins = 10'000;

constexpr int64_t kPlotWidth = 640;
constexpr int64_t kPlotHeight = 320;
constexpr int64_t kHistogramMargin = 16;
constexpr int64_t kTop = kHistogramMargin + 28;
/// Of the bars: the middle of viridis, dark enough on white.
constexpr double kBarShade = 0.4;

std::string tick_text(double tick) { return short_number(std::abs(tick) < 1e-300 ? 0 : tick); }

std::string outside_text(const Histogram& histogram) {
  std::string text;
  if (histogram.below > 0) text += fmt::format("{} below", with_thousands(histogram.below));
  if (histogram.above > 0) {
    text += fmt::format("{}{} above", text.empty() ? "" : ", ", with_thousands(histogram.above));
  }
  if (histogram.non_finite > 0) {
    text += fmt::format("{}{} not finite", text.empty() ? "" : ", ",
                        with_thousands(histogram.non_finite));
  }
  return text;
}

/// The numbers of the vertical axis; counts are whole.
std::vector<double> count_ticks(double most) {
  std::vector<double> ticks = round_ticks(0, most, 9);
  std::erase_if(ticks, [](double tick) { return tick != std::floor(tick); });
  return ticks;
}

/// What one pass over the numbers finds; infinite ones and NaN are only counted.
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

}  // namespace

std::vector<double> round_ticks(double low, double high, int most) {
  const double rough = high / std::max(most - 1, 1) - low / std::max(most - 1, 1);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = power;
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    step = factor * power;
    if (step >= rough * 0.999) break;
  }
  std::vector<double> ticks;
  const double first = std::ceil(low / step - 1e-9);
  for (int i = 0; i < most; ++i) {  // of large numbers first + 1 may be first
    const double tick = (first + i) * step;
    if (tick > high + 1e-9 * step) break;
    if (ticks.empty() || tick > ticks.back()) ticks.push_back(tick);
  }
  return ticks;
}

std::string histogram_picture(const Histogram& histogram) {
  const auto most = static_cast<double>(
      std::max<int64_t>(*std::max_element(histogram.counts.begin(), histogram.counts.end()), 1));
  const std::vector<double> counts = count_ticks(most);
  int64_t label = 0;
  for (const double tick : counts) {
    label = std::max(label, pixel_width(with_thousands(static_cast<int64_t>(tick))));
  }
  const int64_t left = kHistogramMargin + pixel_height() + 8 + label + 10;
  const int64_t bottom = kTop + kPlotHeight;
  Canvas canvas(left + kPlotWidth + 3 * kHistogramMargin,
                bottom + 2 * pixel_height() + 22 + kHistogramMargin);

  for (const double tick : counts) {
    const auto y = bottom - static_cast<int64_t>(std::lround(tick / most * kPlotHeight));
    canvas.fill(left, y, kPlotWidth, 1, kFaintInk);
    const std::string text = with_thousands(static_cast<int64_t>(tick));
    canvas.text(left - 10 - pixel_width(text), y - pixel_height() / 2 + 1, text);
  }
  const auto bins = static_cast<int64_t>(histogram.counts.size());
  for (int64_t i = 0; i < bins; ++i) {
    const auto count = static_cast<double>(histogram.counts[static_cast<size_t>(i)]);
    const int64_t begin = left + i * kPlotWidth / bins;
    const int64_t width = std::max<int64_t>(left + (i + 1) * kPlotWidth / bins - begin, 1);
    // What occurs at all is seen.
    const int64_t height =
        count == 0 ? 0 : std::max<int64_t>(std::lround(count / most * kPlotHeight), 2);
    canvas.fill(begin, bottom - height, width > 3 ? width - 1 : width, height, viridis(kBarShade));
  }
  canvas.fill(left, bottom, kPlotWidth, 2, kInk);
  for (const double tick : round_ticks(histogram.low, histogram.high, 9)) {
    const double share = (tick - histogram.low) / (histogram.high - histogram.low);
    const auto x = left + static_cast<int64_t>(std::lround(share * kPlotWidth));
    const std::string text = tick_text(tick);
    canvas.fill(x, bottom, 2, 7, kInk);
    canvas.text(x - pixel_width(text) / 2, bottom + 11, text);
  }
  const std::string name = fit_text(histogram.key, kPlotWidth);
  canvas.text(left + (kPlotWidth - pixel_width(name)) / 2, bottom + 17 + pixel_height(), name);
  canvas.text_upwards(kHistogramMargin, kTop + (kPlotHeight - pixel_width("count")) / 2, "count");
  const std::string outside = fit_text(outside_text(histogram), kPlotWidth);
  canvas.text(left + kPlotWidth - pixel_width(outside), kHistogramMargin, outside);
  return canvas.png();
}

namespace {

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
