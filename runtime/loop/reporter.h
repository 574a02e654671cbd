#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/iterator/context.h"
#include "runtime/log/console.h"
#include "runtime/log/logs.h"
#include "runtime/log/sink.h"
#include "runtime/loop/evaluation.h"
#include "runtime/run/run_directory.h"
#include "runtime/when/settings.h"

namespace stepop {

/// Hands what a run logs to its sinks: of a training PNG and text files, the integrations of the
/// config, the metrics file and the console; of evaluations without a training the console alone,
/// because the numbers that a training goes by are its own.
class Reporter {
 public:
  /// `batches_per_epoch` is 0 when nothing is trained.
  Reporter(Console& console, const RunDirectory& directory, const Settings& settings,
           int64_t batches_per_epoch);

  /// One more sink, behind the others; before `begin_training`.
  void add(std::shared_ptr<Sink> sink) { sinks_.push_back(std::move(sink)); }

  /// A training begins or resumes at `position`; `config` is its resolved config.
  void begin_training(const Position& position, const std::string& config);

  /// The ops that were due at one step, as one event. Returns the scalars by their full names.
  OrderedMap<double> logged(const Position& position, const OrderedMap<Logs>& logs);

  void begin_evaluation();
  /// The result of an evaluation; `begin_evaluation` was called before it.
  void evaluated(const Position& position, const EvaluationResult& result);

  /// An evaluation that ended before this start; a process that was killed right then may not have
  /// reported it.
  void evaluated_before(const Position& position, const OrderedMap<double>& scalars);

  void step_done(const Position& position);
  void evaluating(const std::string& op, int64_t done, int64_t total);

  /// Writes files again that were removed, and warns of it.
  void mend();

  /// Flushes what was logged to the disk. May be called in another thread while this one logs.
  void sync();

  /// Where the last evaluation's outputs are, and how to load them.
  void show_outputs();

  Console& console() { return console_; }

 private:
  Console& console_;
  const RunDirectory& directory_;
  std::vector<std::shared_ptr<Sink>> sinks_;
  std::string last_outputs_;
  std::string last_output_key_;
};

}  // namespace stepop
