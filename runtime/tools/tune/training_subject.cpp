#include "runtime/tools/tune/training_subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/tools/tune/tune_mode.h"

namespace stepop {
namespace {

/// Seconds: long enough for the clock and a few turns of the scheduler, short enough for what else
/// the machine does to fall on all candidates.
constexpr double kPortion = 0.12;
/// Steps that are not measured: what was prepared while it rested is used up, caches are filled.
constexpr int64_t kBeforeEach = 8;
constexpr int64_t kMostBefore = 32;

int64_t steps_for(double seconds, double step_seconds) {
  return std::max<int64_t>(1, std::llround(seconds / std::max(step_seconds, 1e-7)));
}

}  // namespace

TrainingSubject::TrainingSubject(const TraineeOptions& options, const Value& config,
                                 const Candidate& candidate)
    : trainee_(options, kMeasureSteps, config, candidate.settings) {
  read_present();
  // The first step makes what the others find: kernels, memory, the optimizer's state.
  run(0, 1);
  for (int64_t steps = 1; static_cast<double>(steps) * run(0, steps) < kPortion / 2;) steps *= 2;
  steps_ = steps_for(kPortion, step_seconds_);
  trainee_.rest();
}

void TrainingSubject::read_present() {
  const auto json = nlohmann::json::parse(trainee_.read().front());
  present_ = {.is_cpu = json.at("is_cpu"),
              .threads = json.at("threads"),
              .onednn = json.at("onednn"),
              .channels_last = json.at("channels_last"),
              .has_images = json.at("has_images"),
              .can_use_onednn = json.at("can_use_onednn"),
              .workers = json.at("workers"),
              .prefetch = json.at("prefetch"),
              .flushes_denormals = json.at("flushes_denormals"),
              .thread_wait = json.at("thread_wait"),
              .precision = json.at("precision"),
              .processes = json.at("processes"),
              .cores = json.at("cores")};
  device_ = json.at("device");
  batch_size_ = json.at("batch_size");
  examples_ = json.at("examples");
}

double TrainingSubject::run(int64_t before, int64_t steps) {
  trainee_.write(fmt::format("run {} {}", before, steps));
  double memory = 0;
  step_seconds_ = 0;
  for (const auto& line : trainee_.read()) {
    const auto json = nlohmann::json::parse(line);
    step_seconds_ = std::max(step_seconds_, json.at("seconds").get<double>());
    memory += json.at("memory").get<double>();
  }
  memory_ = std::max(memory_, memory);
  return step_seconds_;
}

int64_t TrainingSubject::steps_before() const {
  return std::clamp<int64_t>(steps_ / kBeforeEach, 1, kMostBefore);
}

double TrainingSubject::portion_seconds() const {
  return static_cast<double>(steps_ + steps_before()) * step_seconds_;
}

double TrainingSubject::measure() {
  trainee_.go_on();
  const double seconds = run(steps_before(), steps_);
  trainee_.rest();
  steps_ = steps_for(kPortion, seconds);
  return seconds;
}

}  // namespace stepop
