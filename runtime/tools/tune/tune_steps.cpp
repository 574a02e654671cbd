#include "runtime/tools/tune/tune_steps.h"

#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/base/text_table.h"
#include "runtime/core/system/read_file.h"
#include "runtime/core/value/yaml_writer.h"
#include "runtime/tools/tune/measured_training.h"
#include "runtime/train/run/machine.h"
#include "runtime/train/run/provenance.h"

namespace stepop {
namespace {

/// Without a time limit: seconds, or the seconds of so many portions.
constexpr double kUsualTime = 60;
constexpr double kUsualPortions = 200;
constexpr double kMostTime = 1800;

/// The part of the free memory that the candidates of one race may take.
constexpr double kShareOfMemory = 0.6;
constexpr double kMostAtOnce = 3;

class StepWorkbench : public Workbench {
 public:
  StepWorkbench(const TraineeOptions& trainees, const TuneOptions& options)
      : options_(options), trainees_(trainees), config_(options.config) {}

  std::unique_ptr<TrainingSubject> start_training(const OrderedMap<Value>& settings) {
    return std::make_unique<TrainingSubject>(trainees_, config_, settings);
  }
  std::unique_ptr<Subject> start(const Candidate& candidate) override {
    return start_training(candidate.settings);
  }

  double seconds_left() const override { return end_ - options_.seconds(); }
  void keep(double seconds) override { trainees_.deadline = options_.after(end_ - seconds); }
  size_t room() const override { return room_; }
  void progress(const std::string& what) override {
    if (options_.progress) options_.progress(what, std::min(options_.seconds() / end_, 1.0));
  }

  /// From now on trainings have what `onednn: auto` has chosen for the present settings.
  void keep_choice(const PresentSettings& present) {
    config_.as_map().set("onednn", *present.settings.find("onednn"));
  }
  void set_end(double seconds) {
    end_ = seconds;
    keep(0);
  }
  void set_room(double room) { room_ = static_cast<size_t>(std::clamp(room, 1.0, kMostAtOnce)); }

 private:
  const TuneOptions& options_;
  TraineeOptions trainees_;
  Value config_;
  double end_ = std::numeric_limits<double>::infinity();
  size_t room_ = 1;
};

/// The first number after `name` in a file.
std::optional<double> number_in(const std::string& file, const std::string& name) {
  const auto text = try_read_file(file);
  if (!text) return std::nullopt;
  const size_t at = text->find(name);
  if (at == std::string::npos) return std::nullopt;
  char* end = nullptr;
  const char* begin = text->c_str() + at + name.size();
  const double number = std::strtod(begin, &end);
  return end == begin ? std::nullopt : std::optional(number);
}

std::string interval(const Ratio& ratio) {
  if (ratio.low <= 0) return kNoValue;
  return fmt::format("{:.2f} to {:.2f}", ratio.low, ratio.high);
}

/// A row above the winner's has a higher ratio.
std::string note_of(const TunedRow& row, bool is_winner, bool is_above) {
  if (!row.failure.empty()) return "failed: " + row.failure.substr(0, row.failure.find('\n'));
  std::string note = is_winner ? "the winner" : is_above ? "as fast, within the noise" : "";
  if (row.candidate.changes_results) note += note.empty() ? "changes results" : "; changes results";
  return note;
}

std::string conclusion(const TuneResult& result) {
  std::string text;
  if (!result.not_tried.empty()) {
    text += fmt::format("not tried, as there was no time: {}\n", list_text(result.not_tried));
  }
  if (!result.not_confirmed.empty()) {
    text += fmt::format("not confirmed when measured again: {}\n", list_text(result.not_confirmed));
  }
  if (!result.not_measured_again.empty()) {
    return text + fmt::format(
                      "faster at first, and no time to measure it again: {}; --time gives "
                      "more. The present settings stay\n",
                      list_text(result.not_measured_again));
  }
  if (result.winner.settings.empty()) {
    return text + "nothing is faster than the present settings beyond the noise: they stay\n";
  }
  return text + fmt::format(
                    "{}: {:.2f} times the present speed, {} when measured again with new "
                    "processes, {} portions each\n",
                    result.winner.name(), result.confirmed.median, interval(result.confirmed),
                    result.confirmed.count);
}

std::string winner_text(const TuneResult& result) {
  if (!result.not_measured_again.empty()) {
    return fmt::format("There was no time to measure {} again: these are the config's settings.",
                       list_text(result.not_measured_again));
  }
  if (result.winner.settings.empty()) {
    return "Nothing is faster than the settings of the config beyond the noise: these are they.";
  }
  return fmt::format("{}: {:.2f} times the speed of the config as it was ({}).{}",
                     result.winner.name(), result.confirmed.median, interval(result.confirmed),
                     result.winner.changes_results ? " It changes results." : "");
}

}  // namespace

double available_memory() {
  constexpr double kKilobyte = 1024;
  double available = number_in("/proc/meminfo", "MemAvailable:").value_or(0) * kKilobyte;
  const auto most = number_in("/sys/fs/cgroup/memory.max", "");  // none: the text `max`
  const auto used = number_in("/sys/fs/cgroup/memory.current", "");
  if (most && used) available = std::min(available, std::max(*most - *used, 0.0));
  return available;
}

double TuneOptions::seconds() const {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

TuneOptions::Clock::time_point TuneOptions::after(double seconds) const {
  return begin +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

OrderedMap<Value> TunedSteps::settings() const {
  OrderedMap<Value> settings = present.settings;
  for (const auto& [key, value] : result.winner.settings) settings.set(key, value);
  return settings;
}

std::string TunedSteps::table() const {
  TextTable lines(
      {{"settings"}, {"steps/s", true}, {"ratio", true}, {"spread", true}, {"memory", true}, {""}});
  const auto add = [&](const TunedRow& row, const std::string& note) {
    const bool is_good = row.failure.empty();
    const bool is_present = row.candidate.settings.empty();
    lines.add({row.candidate.name(),
               is_good && row.step_seconds > 0 ? short_number(1 / row.step_seconds) : kNoValue,
               is_good ? fmt::format("{:.2f}", is_present ? 1.0 : row.speed.median) : kNoValue,
               is_good ? interval(row.speed) : kNoValue,
               row.memory > 0 ? size_text(row.memory) : kNoValue, note});
  };
  add(result.present, "spread: one portion against the next");
  bool is_above = !result.winner.settings.empty();
  for (const TunedRow& row : result.rows) {
    const bool is_winner = is_above && row.candidate.settings == result.winner.settings;
    if (is_winner) is_above = false;
    add(row, note_of(row, is_winner, is_above));
  }
  return fmt::format("{}, batches of {}; ratio: times the present speed\n\n{}\n{}", device,
                     batch_size, lines.text(), conclusion(result));
}

std::string TunedSteps::file_text(const std::string& config) const {
  return fmt::format(
      "# What is fastest for {} with batches of {}, found by `stepop tune` in {}, {}.\n"
      "# {}\n# Steps a second before: {}. Measured on {} ({}), {}; stepop {}, LibTorch {}.\n{}",
      config, batch_size, span_text(seconds), local_time("%Y-%m-%d"), winner_text(result),
      short_number(1 / result.present.step_seconds), host_name(), machine_text(), device,
      STEPOP_VERSION, TORCH_VERSION, to_yaml(settings()));
}

TunedSteps tune_steps(const TuneOptions& options, const TraineeOptions& trainees) {
  StepWorkbench bench(trainees, options);
  bench.progress("starting");
  const double begin = options.seconds();
  std::unique_ptr<TrainingSubject> now = bench.start_training({});
  TunedSteps tuned{
      .present = now->present(), .device = now->device(), .batch_size = now->batch_size()};
  bench.keep_choice(tuned.present);
  const double start = options.seconds() - begin;
  const double portion = now->portion_seconds();
  const double limit = options.time_limit > 0
                           ? options.time_limit
                           : std::clamp(kUsualPortions * portion, kUsualTime, kMostTime);
  // However short the limit is, the present settings are measured once.
  bench.set_end(std::max(limit - kTuneEnd, options.seconds() + 3 * portion));
  const double memory = std::max(now->memory(), 1.0);
  bench.set_room(tuned.present.is_cpu ? kShareOfMemory * available_memory() / memory : kMostAtOnce);
  const auto singles = candidates_of(tuned.present, options.precision, options.processes);
  tuned.result = search_settings(singles, std::move(now), start, bench);
  tuned.seconds = options.seconds();
  return tuned;
}

}  // namespace stepop
