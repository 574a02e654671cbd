#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/core/log/console.h"
#include "runtime/core/log/log_writer.h"
#include "runtime/core/log/logs.h"
#include "runtime/core/log/sink.h"
#include "runtime/train/iterator/context.h"
#include "runtime/train/loop/evaluation.h"
#include "runtime/train/run/run_directory.h"
#include "runtime/train/when/settings.h"

namespace stepop {

/// Hands the logs of a run to its sinks. A training has the integrations of the config, the metrics
/// file and the console, and a thread that writes the files of pictures and texts. Evaluations
/// without a training only write to the console, because they must not affect the metrics of the
/// training.
///
/// The metrics file and the console get an event when it is logged. Integrations get an event with
/// pictures when its files are on the disk, and later events after it.
class Reporter {
 public:
  /// `batches_per_epoch` is 0 when nothing is trained. The other arguments must outlive this. Among
  /// several processes only one `writes`; the others show nothing.
  Reporter(Console& console, const RunDirectory& directory, const Settings& settings,
           int64_t batches_per_epoch, bool writes = true);

  /// A training begins or resumes at `position`. `config` is its resolved config; `graph` shows the
  /// computation of its networks, for integrations that want it. `profile` may be null.
  void begin_training(const Position& position, const std::string& config, const LoggedGraph& graph,
                      Profile* profile);

  /// Logs the ops that were due at one step, as one event. Returns the scalars by their full names.
  /// Throws the error of writing an earlier event's files, as do the next three functions.
  OrderedMap<double> logged(const Position& position, const OrderedMap<Logs>& logs);

  /// Waits until all files of logged events are on the disk, and the integrations have the events.
  void finish_files();

  void begin_evaluation();
  /// Reports the result of an evaluation; called after `begin_evaluation`.
  void evaluated(const Position& position, const EvaluationResult& result);

  /// Reports an evaluation that ended before this start, unless it was already reported: the
  /// process may have been killed in between.
  void evaluated_before(const Position& position, const OrderedMap<double>& scalars);

  /// Also hands over events whose files are now written.
  void step_done(const Position& position);
  void evaluating(const std::string& op, int64_t done, int64_t total);

  /// Restores files that were removed, and warns of it.
  void mend();

  /// Flushes all logs to the disk. May be called in another thread during logging.
  void sync();

  /// Shows where the last evaluation's outputs are, and how to load them.
  void show_outputs();

  Console& console() { return console_; }

 private:
  std::vector<Sink*> sinks() const;
  void look_at_images(const UnfinishedLog& log);
  void write(const UnfinishedLog& log);
  void hand_over_written();

  Console& console_;
  const RunDirectory& directory_;
  const Settings& settings_;
  const bool writes_;
  std::vector<std::shared_ptr<Sink>> integrations_;
  std::vector<std::unique_ptr<Sink>> own_sinks_;  ///< The metrics file before the console.
  std::string last_outputs_;
  std::string last_output_key_;
  std::set<std::string> seen_images_;      ///< Names of the images that were logged.
  std::unique_ptr<LogWriter> log_writer_;  ///< Exists from begin_training on.
};

}  // namespace stepop
