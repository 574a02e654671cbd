#include "runtime/loop/reporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/base/number_text.h"
#include "runtime/base/shell_text.h"
#include "runtime/log/metrics_scan.h"
#include "runtime/pictures/image_grid.h"

namespace stepop {
namespace {

constexpr auto kDrawInterval = std::chrono::milliseconds(100);
/// A speed is measured over this time, up to twice it.
constexpr double kMeasureSeconds = 1.0;
constexpr int kBarWidth = 18;
constexpr int kLeastBarWidth = 8;

/// A text as Python reads it.
std::string python_text(const std::string& text) {
  std::string literal = "\"";
  for (const char c : text) literal += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
  return literal + "\"";
}

}  // namespace

std::string progress_bar(double fraction, int width) {
  const double filled = std::clamp(fraction, 0.0, 1.0) * width;
  const int full = static_cast<int>(filled);
  const bool half = full < width && filled - full >= 0.5;
  std::string bar;
  for (int i = 0; i < width; ++i) bar += i < full ? "━" : i == full && half ? "╸" : "─";
  return bar;
}

Reporter::Reporter(Console& console, const RunDirectory& directory, const Settings& settings,
                   int64_t batches_per_epoch)
    : console_(console),
      directory_(directory),
      settings_(settings),
      batches_per_epoch_(batches_per_epoch) {
  if (batches_per_epoch > 0) metrics_.emplace(directory.metrics_file());
}

void Reporter::begin_training(const Position& position, const std::string& config) {
  if (!settings_.writes_tensorboard) return;
  // What a step logs comes before its checkpoint; but a start at step 0 logs it again.
  const int64_t first_step = position.global_step == 0 ? 0 : position.global_step + 1;
  tensorboard_.emplace(directory_.tensorboard(), first_step, config);
}

void Reporter::sync() {
  if (metrics_) metrics_->sync();
  if (tensorboard_) tensorboard_->sync();
}

bool Reporter::is_time_to_draw() {
  const auto now = Clock::now();
  if (now - last_draw_ < kDrawInterval) return false;
  last_draw_ = now;
  return true;
}

Metrics::Event Reporter::event(const Position& position) const {
  return {position.global_step, position.fractional_epoch(), position.samples_seen,
          position.seconds};
}

std::string Reporter::where(const Position& position) const {
  if (batches_per_epoch_ == 0) return "";
  // At an epoch's end the position is the next one's start; people mean the epoch that ended.
  const int64_t epoch = position.epoch + (position.batch > 0 || position.global_step == 0 ? 1 : 0);
  return fmt::format("epoch {}/{}  ", epoch, settings_.num_epochs);
}

Reporter::Mark Reporter::now(const Position& position) const {
  const auto trained = Clock::now() - start_ - evaluation_time_;
  return {std::chrono::duration<double>(trained).count(), position.samples_seen,
          position.global_step};
}

void Reporter::measure(const Position& position) {
  const Mark current = now(position);
  if (!old_mark_) {
    old_mark_ = new_mark_ = current;
    return;
  }
  const double seconds = current.seconds - old_mark_->seconds;
  if (seconds <= 0 || current.steps == old_mark_->steps) return;
  samples_per_second_ = static_cast<double>(current.samples - old_mark_->samples) / seconds;
  steps_per_second_ = static_cast<double>(current.steps - old_mark_->steps) / seconds;
  if (current.seconds - new_mark_.seconds < kMeasureSeconds) return;
  old_mark_ = new_mark_;
  new_mark_ = current;
}

std::string Reporter::rate() const {
  if (samples_per_second_ <= 0) return "";
  return fmt::format("  {} examples/s",
                     with_thousands(static_cast<int64_t>(std::llround(samples_per_second_))));
}

std::string Reporter::remaining(const Position& position) const {
  if (steps_per_second_ <= 0) return "";
  const auto steps = static_cast<double>(settings_.num_steps - position.global_step);
  return fmt::format("  ETA {}", clock_text(steps / steps_per_second_));
}

void Reporter::step_done(const Position& position) {
  if (!old_mark_) measure(position);
  if (!console_.is_terminal() || !is_time_to_draw()) return;
  measure(position);
  const double fraction =
      static_cast<double>(position.batch) / static_cast<double>(batches_per_epoch_);
  const std::string head = where(position);
  const std::string middle =
      fmt::format("{:3.0f}%  step {}/{}{}", 100 * fraction, position.global_step,
                  settings_.num_steps, loss_.empty() ? "" : "  " + loss_);
  // A line that is too long would scroll instead of standing still: what matters least goes first.
  for (const bool with_rate : {true, false}) {
    const std::string tail = middle + (with_rate ? rate() : "") + remaining(position);
    const int room = console_.width() - static_cast<int>(head.size() + tail.size()) - 3;
    if (room < kLeastBarWidth && with_rate) continue;
    const std::string bar = progress_bar(fraction, std::clamp(room, 0, kBarWidth));
    console_.progress(fmt::format("{}{}  {}", head, bar, tail));
    return;
  }
}

void Reporter::evaluating(const std::string& op, int64_t done, int64_t total) {
  if (!console_.is_terminal() || !is_time_to_draw()) return;
  const double fraction = static_cast<double>(done) / static_cast<double>(total);
  console_.progress(fmt::format("{}  {}  {:3.0f}%  {} of {} examples", op,
                                progress_bar(fraction, kBarWidth), 100 * fraction,
                                with_thousands(done), with_thousands(total)));
}

OrderedMap<double> Reporter::logged(const Position& position, const OrderedMap<Logs>& logs) {
  OrderedMap<double> values;
  OrderedMap<std::string> pngs;
  std::string text;
  for (const auto& [op, result] : logs) {
    std::string numbers;
    for (const auto& [key, scalar] : result.scalars) {
      const std::string name = op + "/" + key;
      const double value = scalar.read(name);
      values.set(name, value);
      numbers += fmt::format(" {} {}", key, short_number(value));
    }
    if (!numbers.empty()) text += fmt::format("{}{}:{}", text.empty() ? "" : "  ", op, numbers);
    for (const auto& [key, images] : result.images) {
      const size_t slash = op.find('/');
      const std::string folder = directory_.images(op.substr(0, slash), op.substr(slash + 1));
      std::string png = write_image_grid(folder + "/" + key, position.global_step, images);
      if (tensorboard_) pngs.set(op + "/" + key, std::move(png));
    }
  }
  for (const auto& [name, value] : values) {
    if (!name.starts_with("train/")) continue;
    loss_ = fmt::format("{} {}", name.substr(name.rfind('/') + 1), short_number(value));
    break;
  }
  measure(position);
  // Before the metrics: a process that is killed in between may tell it twice, but not lose it.
  if (tensorboard_) tensorboard_->write(position.global_step, values, pngs);
  if (metrics_) metrics_->write(event(position), values);
  if (!text.empty()) {
    console_.detail(fmt::format("{}step {}/{}  {}{}{}", where(position), position.global_step,
                                settings_.num_steps, text, rate(), remaining(position)));
  }
  return values;
}

void Reporter::evaluated(const Position& position, const EvaluationResult& result) {
  if (tensorboard_) tensorboard_->write(position.global_step, result.scalars);
  if (metrics_) metrics_->write(event(position), result.scalars);
  std::string text;
  std::string group;
  for (const auto& [name, value] : result.scalars) {
    const size_t slash = name.rfind('/');
    if (name.substr(0, slash) != group) text += "  " + (group = name.substr(0, slash)) + ":";
    text += fmt::format(" {} {}", name.substr(slash + 1), short_number(value));
  }
  console_.info(fmt::format("{}step {}{}", where(position), position.global_step, text));
  for (const auto& [name, message] : result.failures) {
    console_.warn(fmt::format("the callback {} failed: {}", name, message));
  }
  if (!result.warning.empty()) console_.warn(result.warning);
  last_outputs_ = result.outputs;
  last_output_key_ = result.first_output;
  evaluation_time_ += Clock::now() - evaluation_start_;
}

void Reporter::evaluated_before(const Position& position, const OrderedMap<double>& scalars) {
  if (scalars.empty()) return;
  const std::string& name = scalars.begin()->first;
  // The lines of this step are the file's last ones.
  for (const auto& text : last_lines(directory_.metrics_file())) {
    const auto line = parse_metrics_line(text);
    if (line && line->event.step == position.global_step && line->values.contains(name)) return;
  }
  begin_evaluation();
  EvaluationResult result;
  result.scalars = scalars;
  evaluated(position, result);
}

void Reporter::show_outputs() {
  if (last_outputs_.empty()) return;
  console_.info(fmt::format("outputs: {}", last_outputs_));
  const std::string python = fmt::format("import h5py; f = h5py.File({}); print(f[{}].shape)",
                                         python_text(last_outputs_), python_text(last_output_key_));
  console_.info("load them:  python -c " + shell_word(python));
}

}  // namespace stepop
