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

/// Hands what a run logs to its sinks: of a training the integrations of the config, the metrics
/// file and the console, and pictures and texts to a thread that writes their files; of evaluations
/// without a training to the console alone, because the numbers that a training goes by are its
/// own.
///
/// The metrics file and the console have an event when it is logged. Integrations have one with
/// pictures when its files are on the disk, and those after it only then.
class Reporter {
 public:
  /// `batches_per_epoch` is 0 when nothing is trained. The others must outlive this. Of several
  /// processes one `writes`; of the others nothing is seen.
  Reporter(Console& console, const RunDirectory& directory, const Settings& settings,
           int64_t batches_per_epoch, bool writes = true);

  /// A training begins or resumes at `position`; `config` is its resolved config, `graph` what
  /// its networks compute, for those that want it. `profile` may be null.
  void begin_training(const Position& position, const std::string& config, const LoggedGraph& graph,
                      Profile* profile);

  /// The ops that were due at one step, as one event. Returns the scalars by their full names.
  /// Throws what writing the files of an earlier one failed with, as the next three do.
  OrderedMap<double> logged(const Position& position, const OrderedMap<Logs>& logs);

  /// Waits until the files of everything that was logged are on the disk, and the integrations have
  /// it.
  void finish_files();

  void begin_evaluation();
  /// The result of an evaluation; `begin_evaluation` was called before it.
  void evaluated(const Position& position, const EvaluationResult& result);

  /// An evaluation that ended before this start; a process that was killed right then may not have
  /// reported it.
  void evaluated_before(const Position& position, const OrderedMap<double>& scalars);

  /// Also hands over what became files meanwhile.
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
  std::vector<Sink*> sinks() const;
  void look_at_images(const UnfinishedLog& log);
  void write(const UnfinishedLog& log);
  void hand_over_written();

  Console& console_;
  const RunDirectory& directory_;
  const Settings& settings_;
  const bool writes_;
  std::vector<std::shared_ptr<Sink>> integrations_;
  std::vector<std::unique_ptr<Sink>> own_sinks_;  ///< Metrics before the console.
  std::string last_outputs_;
  std::string last_output_key_;
  std::set<std::string> seen_images_;      ///< The names of those that were logged.
  std::unique_ptr<LogWriter> log_writer_;  ///< From begin_training on.
};

}  // namespace stepop
