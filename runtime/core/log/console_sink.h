#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/core/log/console.h"
#include "runtime/core/log/sink.h"

namespace stepop {

/// Shows a training on the console: a line for each log and evaluation, the logged texts, and in
/// between a progress bar with the speed and the remaining time.
class ConsoleSink : public Sink {
 public:
  /// The end of the training; `trains` is false for evaluations without a training.
  struct Plan {
    bool trains = true;
    int64_t num_steps = 0;
    int64_t num_epochs = 0;
  };

  ConsoleSink(Console& console, const Plan& plan) : console_(console), plan_(plan) {}

  void write(const LogEvent& event, const LogRecord& record) override;
  /// Moves the progress bar, at most ten times a second.
  void step_done(const LogEvent& event) override;
  std::string mend() override { return console_.mend_log_file(); }
  void evaluation_begins() override { evaluation_start_ = Clock::now(); }
  void evaluating(const std::string& op, int64_t done, int64_t total) override;

 private:
  using Clock = std::chrono::steady_clock;

  /// Counts and times of the training, without its evaluations. There are two marks, so that a
  /// speed is always measured over one to two seconds.
  struct Mark {
    double seconds = 0;
    int64_t samples = 0;
    int64_t steps = 0;
  };

  void write_log(const LogEvent& event, const LogRecord& record);
  void write_evaluation(const LogEvent& event, const LogRecord& record);
  bool is_time_to_draw();
  std::string where(const LogEvent& event) const;
  std::string rate() const;
  std::string remaining(const LogEvent& event) const;
  void measure(const LogEvent& event);

  Console& console_;
  Plan plan_;
  std::string loss_;  ///< The first scalar of the last train log, `loss 0.312`.
  Clock::time_point last_draw_ = Clock::now();

  Clock::time_point start_ = Clock::now();
  Clock::duration evaluation_time_{0};
  Clock::time_point evaluation_start_;
  std::optional<Mark> old_mark_;
  Mark new_mark_;
  double samples_per_second_ = 0;
  double steps_per_second_ = 0;
};

/// `━━━━━╸────` of `width` columns.
std::string progress_bar(double fraction, int width);

}  // namespace stepop
