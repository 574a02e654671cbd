#include "runtime/loop/reporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "runtime/files/atomic_file.h"
#include "runtime/log/image_grid.h"
#include "runtime/log/number_text.h"

namespace stepop {
namespace {

constexpr auto kDrawInterval = std::chrono::milliseconds(100);
/// A speed is measured over this time, up to twice it.
constexpr double kMeasureSeconds = 1.0;
constexpr int kBarWidth = 18;

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
      batches_per_epoch_(batches_per_epoch),
      metrics_(directory.metrics_file()) {}

bool Reporter::is_time_to_draw() {
  const auto now = Clock::now();
  if (now - last_draw_ < kDrawInterval) return false;
  last_draw_ = now;
  return true;
}

Metrics::Event Reporter::event(const Position& position) const {
  return {position.global_step,
          static_cast<double>(position.epoch) + static_cast<double>(position.batch) /
                                                    static_cast<double>(batches_per_epoch_),
          position.samples_seen, position.seconds};
}

std::string Reporter::where(const Position& position) const {
  // At an epoch's end the position is the next one's start; people mean the epoch that ended.
  const int64_t epoch = position.epoch + (position.batch > 0 || position.global_step == 0 ? 1 : 0);
  return fmt::format("epoch {}/{}", epoch, settings_.num_epochs);
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

std::string Reporter::speed(const Position& position) const {
  if (steps_per_second_ <= 0) return "";
  const double remaining = static_cast<double>(settings_.num_steps - position.global_step);
  return fmt::format("  {} examples/s  ETA {}",
                     with_thousands(static_cast<int64_t>(std::llround(samples_per_second_))),
                     clock_text(remaining / steps_per_second_));
}

void Reporter::step_done(const Position& position) {
  if (!old_mark_) measure(position);
  if (!console_.is_terminal() || !is_time_to_draw()) return;
  measure(position);
  const double fraction = position.batch == 0 ? 1.0
                                              : static_cast<double>(position.batch) /
                                                    static_cast<double>(batches_per_epoch_);
  const std::string head = where(position);
  const std::string tail =
      fmt::format("{:3.0f}%  step {}/{}{}{}", 100 * fraction, position.global_step,
                  settings_.num_steps, loss_.empty() ? "" : "  " + loss_, speed(position));
  // A line that is too long would scroll instead of standing still.
  const int room = console_.width() - static_cast<int>(head.size() + tail.size()) - 6;
  const int bar = std::clamp(room, 0, kBarWidth);
  const std::string line = fmt::format("{}  {}  {}", head, progress_bar(fraction, bar), tail);
  console_.progress(room < 0 ? line.substr(0, static_cast<size_t>(console_.width()) - 1) : line);
}

void Reporter::evaluating(const std::string& op, int64_t done, int64_t total) {
  if (!console_.is_terminal() || !is_time_to_draw()) return;
  const double fraction = static_cast<double>(done) / static_cast<double>(total);
  console_.progress(fmt::format("{}  {}  {:3.0f}%  {} of {} examples", op,
                                progress_bar(fraction, kBarWidth), 100 * fraction,
                                with_thousands(done), with_thousands(total)));
}

void Reporter::write_image(const std::string& folder, const std::string& name, int64_t step,
                           const at::Tensor& images) {
  const std::string path = fmt::format("{}/{}_{:07}.png", folder, name, step);
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failed);
  write_file_atomically(path, image_grid_png(images));
}

void Reporter::logged(const Position& position, const OrderedMap<Logs>& logs) {
  OrderedMap<double> values;
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
      write_image(directory_.images(op.substr(0, slash), op.substr(slash + 1)), key,
                  position.global_step, images);
    }
  }
  for (const auto& [name, value] : values) {
    if (!name.starts_with("train/")) continue;
    loss_ = fmt::format("{} {}", name.substr(name.rfind('/') + 1), short_number(value));
    break;
  }
  measure(position);
  metrics_.write(event(position), values);
  if (!text.empty()) {
    console_.detail(fmt::format("{}  step {}/{}  {}{}", where(position), position.global_step,
                                settings_.num_steps, text, speed(position)));
  }
}

void Reporter::evaluated(const Position& position, const EvaluationResult& result) {
  metrics_.write(event(position), result.scalars);
  for (const auto& [name, value] : result.scalars) {
    const size_t slash = name.rfind('/');
    console_.info(fmt::format("{}: {} {}", name.substr(0, slash), name.substr(slash + 1),
                              short_number(value)));
  }
  for (const auto& [name, images] : result.images) {
    write_image(result.folder, name, position.global_step, images);
  }
  for (const auto& [name, message] : result.failures) {
    console_.warn(fmt::format("the callback {} failed: {}", name, message));
  }
  last_outputs_ = result.outputs;
  evaluation_time_ += Clock::now() - evaluation_start_;
}

void Reporter::show_outputs() {
  if (last_outputs_.empty()) return;
  console_.info(fmt::format("outputs: {}", last_outputs_));
  console_.info(fmt::format(
      "load them:  python -c \"import h5py; f = h5py.File('{}'); print(f['outputs'].keys())\"",
      last_outputs_));
}

}  // namespace stepop
