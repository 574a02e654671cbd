#include "eval_out/callbacks/histogram_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/base/number_text.h"
#include "runtime/pictures/canvas.h"

namespace stepop {
namespace {

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

}  // namespace stepop
