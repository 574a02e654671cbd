#include "runtime/core/pictures/axes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/core/base/number_text.h"

namespace stepop {
namespace {

constexpr int kMostTicks = 9;
constexpr int64_t kMargin = 16;
constexpr int64_t kTop = kMargin + 28;
constexpr double kShade = 0.4;
constexpr int64_t kThickness = 3;
constexpr int64_t kMark = 9;

/// The width from the left edge to the end of the numbers.
int64_t room_for(const Axis& up) {
  int64_t label = 0;
  for (const auto& text : up.texts) label = std::max(label, pixel_width(text));
  return kMargin + pixel_height() + 8 + label + 10;
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
  for (int i = 0; i < most; ++i) {  // if numbers are large, first + 1 may equal first
    const double tick = (first + i) * step;
    if (tick > high + 1e-9 * step) break;
    if (ticks.empty() || tick > ticks.back()) ticks.push_back(tick);
  }
  return ticks;
}

std::pair<double, double> range_with_room(double low, double high, int64_t parts) {
  const double width = (high - low) / static_cast<double>(parts);
  if (low + width > low && high - width < high) return {low, high};
  const double room = std::max(0.5, std::abs(low) * 1e-9);
  constexpr double kLargest = std::numeric_limits<double>::max();
  return {std::max(low - room, -kLargest), std::min(high + room, kLargest)};
}

Axis number_axis(std::string name, double low, double high) {
  Axis axis{std::move(name), low, high, round_ticks(low, high, kMostTicks)};
  for (const double tick : axis.ticks) {
    axis.texts.push_back(short_number(std::abs(tick) < 1e-300 ? 0 : tick));
  }
  return axis;
}

Axis count_axis(std::string name, int64_t most) {
  Axis axis{std::move(name), 0, static_cast<double>(std::max<int64_t>(most, 1))};
  axis.ticks = round_ticks(0, axis.high, kMostTicks);
  std::erase_if(axis.ticks, [](double tick) { return tick != std::floor(tick); });
  for (const double tick : axis.ticks) {
    axis.texts.push_back(with_thousands(static_cast<int64_t>(tick)));
  }
  return axis;
}

Plot::Plot(Axis across, Axis up)
    : across_(std::move(across)),
      up_(std::move(up)),
      left_(room_for(up_)),
      bottom_(kTop + kHeight),
      canvas_(left_ + kWidth + 3 * kMargin, bottom_ + 2 * pixel_height() + 22 + kMargin) {
  for (size_t i = 0; i < up_.ticks.size(); ++i) {
    const int64_t at = y(up_.ticks[i]);
    canvas_.fill(left_, at, kWidth, 1, kFaintInk);
    canvas_.text(left_ - 10 - pixel_width(up_.texts[i]), at - pixel_height() / 2 + 1, up_.texts[i]);
  }
  const std::string name = fit_text(up_.name, kHeight);
  canvas_.text_upwards(kMargin, kTop + (kHeight - pixel_width(name)) / 2, name);
}

int64_t Plot::x(double value) const {
  return left_ + static_cast<int64_t>(std::lround(across_.share(value) * kWidth));
}

int64_t Plot::y(double value) const {
  return bottom_ - static_cast<int64_t>(std::lround(up_.share(value) * kHeight));
}

void Plot::dot(Point at) {
  canvas_.fill(at.first - kThickness / 2, at.second - kThickness / 2, kThickness, kThickness,
               viridis(kShade));
}

void Plot::line(Point from, Point to) {
  const int64_t across = to.first - from.first;
  const int64_t up = to.second - from.second;
  const int64_t steps = std::max({std::abs(across), std::abs(up), int64_t{1}});
  for (int64_t i = 0; i <= steps; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(steps);
    dot({from.first + std::lround(share * static_cast<double>(across)),
         from.second + std::lround(share * static_cast<double>(up))});
  }
}

void Plot::mark(Point at) {
  canvas_.fill(at.first - kMark / 2, at.second - kMark / 2, kMark, kMark, viridis(kShade));
}

std::string Plot::png(const std::string& note) {
  canvas_.fill(left_, bottom_, kWidth, 2, kInk);
  for (size_t i = 0; i < across_.ticks.size(); ++i) {
    const int64_t at = x(across_.ticks[i]);
    canvas_.fill(at, bottom_, 2, 7, kInk);
    canvas_.text(at - pixel_width(across_.texts[i]) / 2, bottom_ + 11, across_.texts[i]);
  }
  const std::string name = fit_text(across_.name, kWidth);
  canvas_.text(left_ + (kWidth - pixel_width(name)) / 2, bottom_ + 17 + pixel_height(), name);
  const std::string shown = fit_text(note, kWidth);
  canvas_.text(left_ + kWidth - pixel_width(shown), kMargin, shown);
  return canvas_.png();
}

}  // namespace stepop
