// What logging costs a step, when it is due and when it is not, and what the loop itself costs.
#include <ATen/ops/cross_entropy_loss.h>
#include <fmt/format.h>

#include <array>
#include <vector>

#include "runtime/train/iterator/iterator.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/optim/update.h"
#include "tests/bench/measure.h"
#include "tests/bench/rows.h"
#include "tests/bench/training.h"

namespace stepop::bench {
namespace {

/// As Classifier, without images in its logs.
class ScalarLogs : public Iterator {
 public:
  explicit ScalarLogs(const Context& context)
      : Iterator(context), model_(context.network<Network>()), update_(context.update()) {}

  StepOps step_op(const Batch& batch) override {
    const auto loss = at::cross_entropy_loss(model_->forward(batch["image"]), batch["class"]);
    return {.train_op = [=, this] { update_.step(loss); },
            .log_op =
                [=] {
                  return Logs{.scalars = {{"loss", loss}}};
                }};
  }

 private:
  std::shared_ptr<Network> model_;
  Update& update_;
};

STEPOP_REGISTER_ITERATOR(ScalarLogs, {"For benchmarks: a classifier that logs no images.", {}});

/// Does nothing, so that a step of it costs what the loop and the loader cost.
class Nothing : public Iterator {
 public:
  using Iterator::Iterator;
  StepOps step_op(const Batch&) override {
    return {.train_op = [] {}, .log_op = [] { return Logs{}; }};
  }
};

STEPOP_REGISTER_ITERATOR(Nothing, {"For benchmarks: does nothing.", {}});

/// The seconds of steps whose number is even, in which a log is due, and of the others.
class EvenAndOdd : public Hook {
 public:
  explicit EvenAndOdd(int64_t warm_up) : warm_up_(warm_up) {}

  void before_step(int64_t step) override {
    // The step that just ended was the `step`-th.
    if (step > warm_up_) seconds_[static_cast<size_t>(step % 2)].push_back(watch_.seconds());
    watch_ = Stopwatch();
  }

  double even() const { return median(seconds_[0]); }
  double odd() const { return median(seconds_[1]); }

 private:
  int64_t warm_up_;
  Stopwatch watch_;
  std::array<std::vector<double>, 2> seconds_;
};

std::string with(std::string yaml, const std::string& line, const std::string& other) {
  const size_t start = yaml.find(line);
  return yaml.replace(start, line.size(), other);
}

void bench_due_logs(const std::string& what, const std::string& iterator) {
  for (const int64_t batch_size : {4, 64}) {
    std::string yaml = with(lenet_yaml(batch_size), "log_ops: []",
                            "log_ops: [train/log_op]\nlog_freq: 2\nstart_log_freq: 2");
    yaml = with(yaml, "iterator: Classifier", "iterator: " + iterator);
    EvenAndOdd hook(20);
    train(yaml, 421, &hook);
    const double cost = hook.even() - hook.odd();
    print_row({fmt::format("step with a due log, batch {}", batch_size), what,
               hook.odd() / hook.even(), duration_text(cost) + " more", duration_text(hook.odd())});
  }
}

/// The seconds of all steps but the first `warm_up`.
class AllSteps : public Hook {
 public:
  explicit AllSteps(int64_t warm_up) : warm_up_(warm_up) {}
  void before_step(int64_t step) override {
    if (step == warm_up_) watch_ = Stopwatch();
  }
  void after_step(int64_t) override { seconds_ = watch_.seconds(); }
  double seconds() const { return seconds_; }

 private:
  int64_t warm_up_;
  Stopwatch watch_;
  double seconds_ = 0;
};

/// A training that logs images at every tenth step against one that logs nothing: all of its time,
/// also what is done behind the loop.
void bench_image_logs(const std::string& format) {
  for (const int64_t batch_size : {4, 64}) {
    const int64_t steps = batch_size == 4 ? 400 : 150;
    const std::string without = lenet_yaml(batch_size);
    const std::string logs = with(without, "log_ops: []",
                                  "log_ops: [train/log_op]\nlog_freq: 10\nstart_log_freq: 10\n"
                                  "log_images: {format: " +
                                      format + "}");
    const auto time = [&](const std::string& yaml) {
      AllSteps hook(20);
      train(yaml, 20 + steps, &hook);
      return hook.seconds() / static_cast<double>(steps);
    };
    const auto times = take_turns(7, {[&] { return time(logs); }, [&] { return time(without); }});
    print_row({fmt::format("a log in ten steps, {}, batch {}", format, batch_size),
               "no logs, all steps", speedup(times[0], times[1]), duration_text(median(times[0])),
               duration_text(median(times[1]))});
  }
}

/// Steps that --profile measures against steps that it does not; beyond those that it traces.
void bench_profile(const std::string& what, const std::string& yaml, int64_t steps) {
  const auto time = [&](bool is_measured) {
    constexpr int64_t kWarmUp = Profile::kTracedSteps;
    AllSteps hook(kWarmUp);
    train(yaml, kWarmUp + steps, &hook, is_measured ? std::make_shared<Profile>() : nullptr);
    return hook.seconds();
  };
  const auto times = take_turns(7, {[&] { return time(true); }, [&] { return time(false); }});
  const auto count = static_cast<double>(steps);
  print_row({what + " with --profile", what, speedup(times[0], times[1]),
             duration_text(median(times[0]) / count), duration_text(median(times[1]) / count)});
}

double time_steps(const std::string& yaml, int64_t steps) {
  return take_turns_with_training(yaml, steps, 1, {})[0][0];
}

}  // namespace

void bench_log() {
  print_header("Logs, and the loop itself");
  bench_due_logs("step without, log of a scalar", "ScalarLogs");
  bench_due_logs("step without, log with images (PNG)", "Classifier");

  bench_image_logs("png");
  bench_image_logs("jpeg");

  constexpr int64_t kSteps = 20000;
  const std::string never = fmt::format(
      "iterator: Nothing\nbatch_size: 4\nn_data_processes: 0\n"
      "datasets: {{train: {{class: Synthetic, size: 100000, shape: [1, 1, 1]}}}}\n");
  const std::string no_logs = never + "log_ops: []\n";
  const std::string not_due =
      never + "log_ops: [{op: train/log_op, when: {every: 1, from: 1000000}}]\n";
  const auto times = take_turns(5, {[&] { return time_steps(not_due, kSteps); },
                                    [&] { return time_steps(no_logs, kSteps); }});
  const double with_log = median(times[0]) / kSteps;
  const double without = median(times[1]) / kSteps;
  print_row({"empty step, a log that is not due", "empty step, no logs",
             speedup(times[0], times[1]), duration_text(with_log), duration_text(without)});

  bench_profile("empty step", no_logs, kSteps);
  bench_profile("step, batch 4", lenet_yaml(4), 500);
}

}  // namespace stepop::bench
