#include "runtime/tools/tune/batch_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text_table.h"
#include "runtime/core/pictures/axes.h"
#include "runtime/core/pictures/canvas.h"
#include "runtime/tools/tune/measured_training.h"
#include "runtime/tools/tune/ratios.h"

namespace stepop {
namespace {

constexpr double kTimeForSizes = 120;  // seconds
constexpr int kPortionsOfSize = 5;
constexpr int kBetweenTries = 3;
/// The part of the free memory that a training may take.
constexpr double kShareOfFree = 0.8;
/// At this part of the highest speed a larger batch brings little.
constexpr double kNearlyAll = 0.95;

/// The memory that a size would need, by the line through the two largest measured ones.
double expected_memory(const std::vector<BatchSizeRow>& rows, int64_t size) {
  if (rows.size() < 2) return 0;
  const BatchSizeRow& a = rows[rows.size() - 2];
  const BatchSizeRow& b = rows.back();
  const double slope = (b.memory - a.memory) / static_cast<double>(b.batch_size - a.batch_size);
  return b.memory + std::max(slope, 0.0) * static_cast<double>(size - b.batch_size);
}

std::string failure_line(const std::string& failure) {
  return failure.substr(0, failure.find('\n'));
}

std::vector<BatchSizeRow> measured(const std::vector<BatchSizeRow>& rows) {
  std::vector<BatchSizeRow> good;
  for (const auto& row : rows) {
    if (row.failure.empty()) good.push_back(row);
  }
  return good;
}

/// Powers of two at equal distances.
Axis size_axis(const std::vector<BatchSizeRow>& rows) {
  Axis axis{.name = "batch size",
            .low = std::log2(static_cast<double>(rows.front().batch_size)),
            .high = std::log2(static_cast<double>(rows.back().batch_size))};
  if (axis.high <= axis.low) axis.high = axis.low + 1;
  constexpr double kMostTicks = 9;
  const double step = std::max(1.0, std::ceil((axis.high - axis.low) / kMostTicks));
  for (double tick = std::ceil(axis.low); tick <= axis.high; tick += step) {
    axis.ticks.push_back(tick);
    axis.texts.push_back(fmt::format("{:.0f}", std::exp2(tick)));
  }
  return axis;
}

template <class Get>
at::Tensor plot(const std::vector<BatchSizeRow>& rows, const std::string& name, const Get& get) {
  double most = 0;
  for (const auto& row : rows) most = std::max(most, get(row));
  Plot picture(size_axis(rows), number_axis(name, 0, most > 0 ? most : 1));
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto at = [&](size_t of) {
      return std::pair{picture.x(std::log2(static_cast<double>(rows[of].batch_size))),
                       picture.y(get(rows[of]))};
    };
    picture.line(at(i == 0 ? 0 : i - 1), at(i));
    picture.mark(at(i));
  }
  picture.png();
  return picture.canvas().picture();
}

}  // namespace

std::vector<BatchSizeRow> measure_batch_sizes(const MeasureBatchSize& measure,
                                              const BatchSizeLimits& limits) {
  std::vector<BatchSizeRow> good;
  std::optional<BatchSizeRow> bad;
  const auto try_size = [&](int64_t size) {
    const double expected = expected_memory(good, size);
    if (limits.memory > 0 && expected > limits.memory) {
      bad = {.batch_size = size,
             .failure = fmt::format("not tried: it would need about {}, and {} are free",
                                    size_text(expected), size_text(limits.memory))};
      return;
    }
    try {
      good.push_back(measure(size));
    } catch (const CandidateFailed& failed) {
      bad = {.batch_size = size, .failure = failed.what()};
    }
  };
  try {
    for (int64_t size = 1; !bad && (limits.most == 0 || size <= limits.most); size *= 2) {
      try_size(size);
    }
    for (int i = 0; bad && !good.empty() && i < kBetweenTries; ++i) {
      const int64_t middle = (good.back().batch_size + bad->batch_size) / 2;
      if (middle <= good.back().batch_size) break;
      try_size(middle);
    }
  } catch (const TimeOver&) {
    if (good.empty() && !bad) throw;
  }
  if (bad) good.push_back(*bad);
  return good;
}

std::vector<BatchSizeRow> tune_batch_size(const TuneOptions& options,
                                          const TraineeOptions& trainees) {
  const double time_limit = options.time_limit > 0 ? options.time_limit : kTimeForSizes;
  TraineeOptions limited = trainees;
  BatchSizeLimits limits;
  const auto measure = [&](int64_t size) -> BatchSizeRow {
    options.progress(fmt::format("batches of {}", size),
                     std::min(options.seconds() / time_limit, 1.0));
    TrainingSubject subject(limited, options.config, {{"batch_size", size}});
    limits.most = subject.examples();
    if (subject.present().is_cpu && limits.memory == 0) {
      limits.memory = kShareOfFree * (available_memory() + subject.memory());
    }
    std::vector<double> times;
    for (int i = 0; i < kPortionsOfSize; ++i) times.push_back(subject.measure());
    // However short the limit is, one size is measured.
    limited.deadline = options.after(time_limit - kTuneEnd);
    return {.batch_size = size,
            .examples_per_second = static_cast<double>(size) / ratio_of(times, 1).median,
            .memory = subject.memory()};
  };
  return measure_batch_sizes(measure, limits);
}

std::string batch_size_table(const std::vector<BatchSizeRow>& rows) {
  TextTable table({{"batch size", true}, {"examples/s", true}, {"memory", true}, {""}});
  for (const auto& row : rows) {
    const bool is_good = row.failure.empty();
    table.add({with_thousands(row.batch_size),
               is_good ? with_thousands(std::llround(row.examples_per_second)) : kNoValue,
               is_good ? size_text(row.memory) : kNoValue, failure_line(row.failure)});
  }
  const std::vector<BatchSizeRow> good = measured(rows);
  if (good.empty()) return table.text();
  const auto fastest = std::ranges::max_element(good, {}, &BatchSizeRow::examples_per_second);
  const auto enough = std::ranges::find_if(good, [&](const BatchSizeRow& row) {
    return row.examples_per_second >= kNearlyAll * fastest->examples_per_second;
  });
  std::string text = table.text() + "\n";
  text += rows.back().failure.empty()
              ? fmt::format("the largest that was tried, {}, fits\n",
                            with_thousands(good.back().batch_size))
              : fmt::format("the largest that fits: {}\n", with_thousands(good.back().batch_size));
  return text + fmt::format("from {} on larger ones bring less than 5 % more speed\n",
                            with_thousands(enough->batch_size));
}

std::string batch_size_picture(const std::vector<BatchSizeRow>& rows) {
  const std::vector<BatchSizeRow> good = measured(rows);
  if (good.empty()) throw Error("no batch size could be measured");
  const at::Tensor speed =
      plot(good, "examples/s", [](const BatchSizeRow& row) { return row.examples_per_second; });
  const at::Tensor memory =
      plot(good, "memory (MB)", [](const BatchSizeRow& row) { return row.memory / 1e6; });
  Canvas canvas(std::max(speed.size(1), memory.size(1)), speed.size(0) + memory.size(0));
  canvas.draw(0, 0, speed);
  canvas.draw(0, speed.size(0), memory);
  return canvas.png();
}

}  // namespace stepop
