#include "tests/bench/training.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <thread>

#include "runtime/core/value/yaml_reader.h"
#include "runtime/train/iterator/splits.h"
#include "runtime/train/loop/training_loop.h"
#include "runtime/train/run/device.h"
#include "runtime/train/session/session.h"
#include "tests/bench/measure.h"
#include "tests/scratch_folder.h"

namespace stepop::bench {
namespace {

/// On a busy machine fewer rounds must do.
constexpr size_t kFewestRounds = 10;
constexpr double kMostSeconds = 20;

/// Threads of the one whose turn it was may look for work for some milliseconds more.
void let_threads_sleep() { std::this_thread::sleep_for(std::chrono::milliseconds(30)); }

/// Divides a training into rounds of `steps` steps; between them it lets others run.
class Turns : public Hook {
 public:
  struct TimeIsUp : std::exception {};

  Turns(int64_t steps, c10::Device device, const std::vector<Portion>& others)
      : steps_(steps), device_(device), others_(others), times_(others.size() + 1) {}

  void before_step(int64_t step) override {
    if (step % steps_ != 0) return;
    synchronize(device_);
    const double seconds = watch_.seconds();
    if (times_[0].size() >= kFewestRounds && total_.seconds() > kMostSeconds) throw TimeIsUp();
    const bool is_warm = step > steps_;
    if (is_warm) times_[0].push_back(seconds);
    for (size_t i = 0; step > 0 && i < others_.size(); ++i) {
      let_threads_sleep();
      const double of_other = others_[i]();
      if (is_warm) times_[i + 1].push_back(of_other);
    }
    if (step > 0 && !others_.empty()) let_threads_sleep();
    watch_ = Stopwatch();
  }

  const std::vector<std::vector<double>>& times() const { return times_; }

 private:
  int64_t steps_;
  c10::Device device_;
  const std::vector<Portion>& others_;
  std::vector<std::vector<double>> times_;
  Stopwatch watch_;
  Stopwatch total_;
};

}  // namespace

Config config_of(const std::string& yaml) {
  Config config(parse_yaml(yaml, {"bench.yaml", 0}));
  config.set_default("device", "cpu");
  return config;
}

std::string lenet_yaml(int64_t batch_size, const std::string& dataset) {
  return fmt::format(
      "iterator: Classifier\n"
      "model: LeNet\n"
      "optimizer: {{class: Adam, lr: 1e-3}}\n"
      "datasets: {{train: {}}}\n"
      "batch_size: {}\n"
      "log_ops: []\n",
      dataset, batch_size);
}

void train(const std::string& yaml, int64_t steps, Hook* hook, std::shared_ptr<Profile> profile) {
  const ScratchFolder scratch;
  const Config config = config_of(fmt::format("{}num_steps: {}\n", yaml, steps));
  Session session(config, /*train=*/true, /*debug=*/false, /*allow_unknown=*/false);
  session.check();
  session.set_profile(std::move(profile));
  const auto directory = RunDirectory::create(scratch.path("logs"), time_name(), "bench");
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> nowhere(std::fopen("/dev/null", "w"),
                                                                std::fclose);
  Console console(LogLevel::kInfo, nowhere.get());
  console.open_log_file(directory.log_file());
  Reporter reporter(console, directory, session.settings(),
                    session.context().splits.order("train").batches_per_epoch());
  TrainingLoop loop(session, directory, reporter, {.time = time_name(), .git = "none"});
  if (hook != nullptr) loop.add_hook(*hook);
  loop.run();
}

std::vector<std::vector<double>> take_turns_with_training(const std::string& yaml, int64_t steps,
                                                          int rounds,
                                                          const std::vector<Portion>& others) {
  Turns turns(steps, read_device(config_of(yaml)), others);
  try {
    train(yaml, steps * (rounds + 1) + 1, &turns);
  } catch (const Turns::TimeIsUp&) {
  }
  return turns.times();
}

int64_t steps_per_round(int64_t batch_size) { return batch_size > 4 ? 15 : 50; }

void print_steps(int64_t batch_size, const std::vector<std::vector<double>>& times,
                 const std::vector<std::string>& baselines) {
  const auto steps = static_cast<double>(steps_per_round(batch_size));
  const auto text = [&](size_t i) { return per_second(steps, median(times[i]), "steps"); };
  for (size_t i = 1; i < times.size(); ++i) {
    print_row({fmt::format("steps, batch {}", batch_size), baselines[i - 1],
               speedup(times[0], times[i]), text(0), text(i)});
  }
}

}  // namespace stepop::bench
