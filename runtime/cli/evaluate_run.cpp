#include "runtime/cli/evaluate_run.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/base/number_text.h"
#include "runtime/cli/checkpoint_queue.h"
#include "runtime/cli/evaluation_folders.h"
#include "runtime/loop/evaluation.h"
#include "runtime/loop/reporter.h"
#include "runtime/run/signals.h"

namespace stepop {
namespace {

/// The evaluations of one start.
class Evaluations {
 public:
  Evaluations(Console& console, const RunDirectory& directory, Session& session,
              EvaluationStart start)
      : console_(console),
        directory_(directory),
        session_(session),
        settings_(session.settings()),
        start_(std::move(start)),
        evaluation_(settings_, session.iterator(), session.context(), start_.git),
        reporter_(console, directory, settings_, /*batches_per_epoch=*/0),
        folders_(directory, session.config_yaml(), start_.time) {}

  int run() {
    if (settings_.eval_all || settings_.eval_forever) {
      evaluate_each();
    } else {
      evaluate_one(start_.checkpoint->checkpoint.checksum);
    }
    reporter_.show_outputs();
    folders_.end();
    return failures_;
  }

 private:
  void evaluate_each() {
    CheckpointQueue queue(directory_.checkpoints(), settings_.eval_forever, start_.deadline);
    if (!settings_.eval_all && start_.checkpoint) {
      queue.pass_over(session_.position().global_step);
      evaluate_one(start_.checkpoint->checkpoint.checksum);
    }
    while (const auto next = queue.next(console_)) {
      session_.restore_for_evaluation(next->checkpoint, next->path);
      console_.info(fmt::format("evaluating {} (step {})", next->path,
                                with_thousands(session_.position().global_step)));
      evaluate_one(next->checkpoint.checksum);
    }
  }

  /// `checkpoint`: the checksum of the one that the session holds.
  void evaluate_one(const std::string& checkpoint) {
    Position& position = session_.position();
    const std::string op = settings_.eval_op.text();
    const std::string folder = folders_.take(
        position.global_step,
        [&](const std::string& other) {
          return evaluation_.rows_left_behind(position, other, checkpoint);
        },
        console_);
    reporter_.begin_evaluation();
    const EvaluationResult result = evaluation_.run(
        position, folder,
        [&](int64_t done, int64_t total) { reporter_.evaluating(op, done, total); },
        throw_if_signal_arrived, checkpoint);
    reporter_.evaluated(position, result);
    failures_ += static_cast<int>(result.failures.size());
  }

  Console& console_;
  const RunDirectory& directory_;
  Session& session_;
  const Settings& settings_;
  EvaluationStart start_;
  Evaluation evaluation_;
  Reporter reporter_;
  EvaluationFolders folders_;
  int failures_ = 0;
};

}  // namespace

int evaluate_run(Console& console, const RunDirectory& directory, Session& session,
                 EvaluationStart start) {
  return Evaluations(console, directory, session, std::move(start)).run();
}

}  // namespace stepop
