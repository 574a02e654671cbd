#include "runtime/core/pictures/histogram.h"

#include <ATen/ops/isfinite.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/core/base/number_text.h"
#include "runtime/core/pictures/axes.h"

namespace stepop {
namespace {

/// The colour of the bars: the middle of viridis, dark enough on white.
constexpr double kBarShade = 0.4;

std::string outside_text(const Histogram& histogram) {
  std::string text;
  const auto add = [&](int64_t count, const char* where) {
    if (count == 0) return;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", with_thousands(count), where);
  };
  add(histogram.below, "below");
  add(histogram.above, "above");
  add(histogram.non_finite, "not finite");
  return text;
}

/// The finite numbers, float64 [N] on the CPU.
at::Tensor all_finite(const at::Tensor& numbers) {
  const at::Tensor all = numbers.detach().to(at::kCPU, at::kDouble).reshape({-1});
  return all.masked_select(at::isfinite(all)).contiguous();
}

}  // namespace

void Histogram::add(const at::Tensor& numbers) {
  const at::Tensor finite = all_finite(numbers);
  non_finite += numbers.numel() - finite.numel();
  const size_t last = counts.size() - 1;
  const auto bins = static_cast<double>(counts.size());
  const auto* values = finite.const_data_ptr<double>();
  for (int64_t i = 0; i < finite.numel(); ++i) {
    const double value = values[i];
    if (value < low || value > high) {
      ++(value < low ? below : above);
      continue;
    }
    size_t bin = std::min(static_cast<size_t>((value - low) / (high - low) * bins), last);
    // Rounding may have moved the value over an edge.
    if (value < edge(bin)) --bin;
    if (bin < last && value >= edge(bin + 1)) ++bin;
    ++counts[bin];
    sum += value;
    sum_of_squares += value * value;
  }
}

Histogram histogram_of(const at::Tensor& numbers, int64_t bins) {
  const at::Tensor finite = all_finite(numbers);
  Histogram histogram{.counts = std::vector<int64_t>(static_cast<size_t>(bins), 0)};
  histogram.non_finite = numbers.numel() - finite.numel();
  if (finite.numel() == 0) return histogram;
  const auto low = finite.min().item<double>();
  const auto high = finite.max().item<double>();
  // Bins over the whole range of float64 would have an infinite width.
  constexpr double kLargest = 8e307;
  std::tie(histogram.low, histogram.high) =
      range_with_room(std::max(low, -kLargest), std::min(high, kLargest), bins);
  histogram.add(finite);
  return histogram;
}

std::string histogram_picture(const Histogram& histogram) {
  const int64_t most = *std::max_element(histogram.counts.begin(), histogram.counts.end());
  Plot plot(number_axis(histogram.key, histogram.low, histogram.high), count_axis("count", most));
  const auto bins = static_cast<int64_t>(histogram.counts.size());
  for (int64_t i = 0; i < bins; ++i) {
    const int64_t count = histogram.counts[static_cast<size_t>(i)];
    const int64_t begin = plot.left() + i * Plot::kWidth / bins;
    const int64_t width = std::max<int64_t>(plot.left() + (i + 1) * Plot::kWidth / bins - begin, 1);
    const int64_t top = plot.y(static_cast<double>(count));
    // A bar of at least 2 pixels keeps small counts visible.
    const int64_t height = count == 0 ? 0 : std::max<int64_t>(plot.bottom() - top, 2);
    plot.canvas().fill(begin, plot.bottom() - height, width > 3 ? width - 1 : width, height,
                       viridis(kBarShade));
  }
  return plot.png(outside_text(histogram));
}

}  // namespace stepop
