#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "runtime/iterator/context.h"
#include "runtime/log/console.h"
#include "runtime/log/logs.h"
#include "runtime/log/metrics.h"
#include "runtime/log/tensorboard.h"
#include "runtime/loop/evaluation.h"
#include "runtime/run/run_directory.h"
#include "runtime/when/settings.h"

namespace stepop {

/// Tells people and files what a run does: console, log file, metrics file, image grids. Of
/// evaluations without a training it tells the console and the log file alone: the numbers that a
/// training goes by are its own.
class Reporter {
 public:
  /// `batches_per_epoch` is 0 when nothing is trained.
  Reporter(Console& console, const RunDirectory& directory, const Settings& settings,
           int64_t batches_per_epoch);

  /// A training begins or goes on from `position`; `config` is its resolved config.
  void begin_training(const Position& position, const std::string& config);

  /// The ops that were due at one step: their scalars become one line of the metrics file, their
  /// images one grid each. Returns the scalars by their full names.
  OrderedMap<double> logged(const Position& position, const OrderedMap<Logs>& logs);

  void begin_evaluation() { evaluation_start_ = Clock::now(); }
  /// The result of an evaluation; `begin_evaluation` was called before it.
  void evaluated(const Position& position, const EvaluationResult& result);

  /// An evaluation that ended before this start; a process that was killed right then may not have
  /// told it.
  void evaluated_before(const Position& position, const OrderedMap<double>& scalars);

  /// Moves the progress bar, at most ten times a second.
  void step_done(const Position& position);
  void evaluating(const std::string& op, int64_t done, int64_t total);

  /// Flushes the metrics to the disk. May be called in another thread while this one logs.
  void sync();

  /// Where the last evaluation's outputs are, and how to load them.
  void show_outputs();

  Console& console() { return console_; }

 private:
  using Clock = std::chrono::steady_clock;

  bool is_time_to_draw();
  Metrics::Event event(const Position& position) const;
  std::string where(const Position& position) const;
  std::string rate() const;
  std::string remaining(const Position& position) const;
  void measure(const Position& position);

  Console& console_;
  const RunDirectory& directory_;
  const Settings& settings_;
  int64_t batches_per_epoch_;
  std::optional<Metrics> metrics_;  ///< Of a training.
  std::optional<TensorBoard> tensorboard_;

  std::string loss_;  ///< The first scalar of the last train log, `loss 0.312`.
  Clock::time_point last_draw_ = Clock::now();
  std::string last_outputs_;
  std::string last_output_key_;

  /// Counts and times of the training alone, without its evaluations; two marks, so that a speed is
  /// always measured over one to two seconds.
  struct Mark {
    double seconds = 0;
    int64_t samples = 0;
    int64_t steps = 0;
  };
  Mark now(const Position& position) const;

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
