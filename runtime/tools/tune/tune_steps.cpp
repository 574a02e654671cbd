#include "runtime/tools/tune/tune_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>

#include "runtime/core/system/read_file.h"
#include "runtime/tools/tune/measured_training.h"
#include "runtime/tools/tune/training_subject.h"

namespace stepop {
namespace {

using Clock = std::chrono::steady_clock;

/// Seconds, and in portions: enough for some ten candidates and a second measurement.
constexpr double kUsualTime = 60;
constexpr double kUsualPortions = 200;
constexpr double kMostTime = 1800;

/// Of the memory that is free, that all candidates together may take.
constexpr double kShareOfMemory = 0.6;
constexpr double kMostAtOnce = 16;
constexpr size_t kAtOnceOnGpu = 3;

/// The same numbers each time.
constexpr uint64_t kSeed = 1;

class StepWorkbench : public Workbench {
 public:
  StepWorkbench(const TraineeOptions& trainees, const TuneOptions& options, double time_limit)
      : trainees_(trainees),
        config_(config_of_steps(options.config)),
        time_limit_(time_limit),
        progress_(options.progress),
        begin_(options.begin) {}

  std::unique_ptr<Subject> start(const Candidate& candidate) override {
    return std::make_unique<TrainingSubject>(trainees_, config_, candidate);
  }

  double seconds() const override {
    return std::chrono::duration<double>(Clock::now() - begin_).count();
  }

  size_t room() const override { return room_; }
  void set_room(size_t room) { room_ = room; }
  void set_time_limit(double seconds) { time_limit_ = seconds; }

  void progress(const std::string& what) override {
    if (progress_) progress_(what, std::min(seconds() / time_limit_, 1.0));
  }

 private:
  const TraineeOptions& trainees_;
  Value config_;
  double time_limit_;
  const TuneProgress& progress_;
  Clock::time_point begin_;
  size_t room_ = 1;
};

/// The first number behind `name` in a file of the system's.
std::optional<double> number_in(const std::string& file, const std::string& name) {
  const auto text = try_read_file(file);
  if (!text) return std::nullopt;
  const size_t at = name.empty() ? 0 : text->find(name);
  if (at == std::string::npos) return std::nullopt;
  char* end = nullptr;
  const char* begin = text->c_str() + at + name.size();
  const double number = std::strtod(begin, &end);
  return end == begin ? std::nullopt : std::optional(number);
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

OrderedMap<Value> TunedSteps::settings() const {
  OrderedMap<Value> settings = settings_of(present);
  for (const auto& [key, value] : result.winner.settings) settings.set(key, value);
  return settings;
}

TunedSteps tune_steps(const TuneOptions& options, const TraineeOptions& trainees) {
  const double first_limit = options.time_limit > 0 ? options.time_limit : kUsualTime;
  StepWorkbench bench(trainees, options, first_limit);
  TunedSteps tuned;
  bench.progress("starting");
  double portion = 0;
  {
    TrainingSubject now(trainees, config_of_steps(options.config), {});
    tuned.present = now.present();
    tuned.device = now.device();
    tuned.batch_size = now.batch_size();
    portion = now.portion_seconds();
    const double fit =
        std::min(kShareOfMemory * available_memory() / std::max(now.memory(), 1.0), kMostAtOnce);
    bench.set_room(now.present().is_cpu ? static_cast<size_t>(std::max(fit, 1.0)) : kAtOnceOnGpu);
  }
  const double limit = options.time_limit > 0
                           ? options.time_limit
                           : std::clamp(kUsualPortions * portion, kUsualTime, kMostTime);
  bench.set_time_limit(limit);
  const auto axes = alternatives_of(tuned.present, options.precision, options.processes);
  tuned.result = search_settings(axes, bench, limit, kSeed);
  tuned.seconds = bench.seconds();
  return tuned;
}

}  // namespace stepop
