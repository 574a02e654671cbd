#include "runtime/core/log/console_sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/core/base/number_text.h"

namespace stepop {
namespace {

constexpr auto kDrawInterval = std::chrono::milliseconds(100);
/// A speed is measured over this time to twice this time.
constexpr double kMeasureSeconds = 1.0;
constexpr int kBarWidth = 18;
constexpr int kLeastBarWidth = 8;
/// The console shows this many bytes of a text; the text's file has all of them.
constexpr size_t kMostShownBytes = 2000;

std::string group_of(const std::string& name) {
  const size_t slash = name.rfind('/');
  return slash == std::string::npos ? "" : name.substr(0, slash);
}

/// Whether two callbacks of one evaluation, `validation/eval_op/<callback>/accuracy`, say the same.
bool are_same(const std::pair<std::string, double>& a, const std::pair<std::string, double>& b) {
  if (a.second != b.second) return false;
  const std::string group = group_of(a.first);
  const std::string other = group_of(b.first);
  return group != other && std::ranges::count(group, '/') >= 2 &&
         group_of(group) == group_of(other) &&
         a.first.substr(group.size()) == b.first.substr(other.size());
}

/// `train/log_op: loss 0.31 accuracy 0.9  validation/log_op: loss 0.4`, without the runtime's own
/// numbers. What several callbacks say is shown once: `accuracy 0.9 (also confusion_matrix)`.
std::string grouped(const OrderedMap<double>& scalars) {
  std::string text;
  std::string group;
  for (auto scalar = scalars.begin(); scalar != scalars.end(); ++scalar) {
    const auto& [name, value] = *scalar;
    const auto same = [&](const auto& other) { return are_same(*scalar, other); };
    if (name.starts_with("runtime/") || std::any_of(scalars.begin(), scalar, same)) continue;
    const std::string its_group = group_of(name);
    if (text.empty() || its_group != group) {
      text += fmt::format("{}{}:", text.empty() ? "" : "  ", group = its_group);
    }
    text += fmt::format(" {} {}", name.substr(name.rfind('/') + 1), short_number(value));
    std::string also;
    for (auto other = std::next(scalar); other != scalars.end(); ++other) {
      if (!same(*other)) continue;
      const std::string callback = group_of(other->first);
      also += (also.empty() ? " (also " : ", ") + callback.substr(callback.rfind('/') + 1);
    }
    text += also.empty() ? "" : also + ")";
  }
  return text;
}

/// Cut at the end of a UTF-8 character.
std::string beginning_of(const std::string& text) {
  if (text.size() <= kMostShownBytes) return text;
  size_t end = kMostShownBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return fmt::format("{} ... ({} more bytes in its file)", text.substr(0, end), text.size() - end);
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

void ConsoleSink::write(const LogEvent& event, const LogRecord& record) {
  if (record.is_evaluation) return write_evaluation(event, record);
  write_log(event, record);
}

void ConsoleSink::write_log(const LogEvent& event, const LogRecord& record) {
  for (const auto& [name, value] : record.scalars) {
    if (!name.starts_with("train/")) continue;
    loss_ = fmt::format("{} {}", name.substr(name.rfind('/') + 1), short_number(value));
    break;
  }
  measure(event);
  const std::string numbers = grouped(record.scalars);
  if (!numbers.empty()) {
    console_.detail(fmt::format("{}step {}/{}  {}{}{}", where(event), event.step, plan_.num_steps,
                                numbers, rate(), remaining(event)));
  }
  for (const auto& [name, content] : record.texts) {
    console_.info(fmt::format("{}: {}", name, beginning_of(content)));
  }
}

void ConsoleSink::write_evaluation(const LogEvent& event, const LogRecord& record) {
  const auto took = Clock::now() - evaluation_start_;
  evaluation_time_ += took;
  const std::string numbers = grouped(record.scalars);
  console_.info(fmt::format("{}step {}  {}", where(event), event.step,
                            numbers.empty() ? "evaluated, without a number to show" : numbers));
  console_.debug(
      fmt::format("the evaluation took {:.2f} s", std::chrono::duration<double>(took).count()));
}

void ConsoleSink::step_done(const LogEvent& event) {
  if (!old_mark_) measure(event);
  if (!console_.is_terminal() || !is_time_to_draw()) return;
  measure(event);
  const double fraction = event.epoch - std::floor(event.epoch);
  const std::string head = where(event);
  const std::string middle = fmt::format("{:3.0f}%  step {}/{}{}", 100 * fraction, event.step,
                                         plan_.num_steps, loss_.empty() ? "" : "  " + loss_);
  // A long line would scroll instead of staying in place: the least important parts are dropped
  // first.
  for (const bool with_rate : {true, false}) {
    const std::string tail = middle + (with_rate ? rate() : "") + remaining(event);
    const int room = console_.width() - static_cast<int>(head.size() + tail.size()) - 3;
    if (room < kLeastBarWidth && with_rate) continue;
    const std::string bar = progress_bar(fraction, std::clamp(room, 0, kBarWidth));
    console_.progress(fmt::format("{}{}  {}", head, bar, tail));
    return;
  }
}

void ConsoleSink::evaluating(const std::string& op, int64_t done, int64_t total) {
  if (!console_.is_terminal() || !is_time_to_draw()) return;
  const double fraction = static_cast<double>(done) / static_cast<double>(total);
  const std::string tail = fmt::format("{:3.0f}%  {} of {} examples", 100 * fraction,
                                       with_thousands(done), with_thousands(total));
  const int room = console_.width() - static_cast<int>(op.size() + tail.size()) - 5;
  const std::string bar = progress_bar(fraction, std::clamp(room, 0, kBarWidth));
  console_.progress(fmt::format("{}  {}  {}", op, bar, tail));
}

bool ConsoleSink::is_time_to_draw() {
  const auto now = Clock::now();
  if (now - last_draw_ < kDrawInterval) return false;
  last_draw_ = now;
  return true;
}

std::string ConsoleSink::where(const LogEvent& event) const {
  if (!plan_.trains) return "";
  // At an epoch's end the position is the next epoch's start; the text shows the epoch that ended.
  const auto epoch = static_cast<int64_t>(std::max(std::ceil(event.epoch), 1.0));
  return fmt::format("epoch {}/{}  ", epoch, plan_.num_epochs);
}

void ConsoleSink::measure(const LogEvent& event) {
  const auto trained = Clock::now() - start_ - evaluation_time_;
  const Mark current{std::chrono::duration<double>(trained).count(), event.samples, event.step};
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

std::string ConsoleSink::rate() const {
  if (samples_per_second_ <= 0) return "";
  return fmt::format("  {} examples/s",
                     with_thousands(static_cast<int64_t>(std::llround(samples_per_second_))));
}

std::string ConsoleSink::remaining(const LogEvent& event) const {
  if (steps_per_second_ <= 0) return "";
  const auto steps = static_cast<double>(plan_.num_steps - event.step);
  return fmt::format("  ETA {}", clock_text(steps / steps_per_second_));
}

}  // namespace stepop
