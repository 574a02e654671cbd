#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "runtime/core/log/console.h"
#include "runtime/tools/start/checkpoint_choice.h"
#include "runtime/train/run/run_directory.h"
#include "runtime/train/session/session.h"

namespace stepop {

/// The data that evaluations without a training need besides their session.
struct EvaluationStart {
  std::string time;  ///< The time of the run, if this start made it; empty for an existing run.
  std::string git;
  /// The checkpoint in the session, whose tensors are not used; nothing when there is no checkpoint
  /// yet, or when the weights come from init_from.
  std::optional<ChosenCheckpoint> checkpoint = {};
  std::chrono::steady_clock::time_point deadline;  ///< For eval_forever.
  bool shows_numbers = false;  ///< Of each evaluation, though the log's level leaves its line out.
  /// Called when the evaluation takes its own time, the name of its config in configs/.
  std::function<void(const std::string& time)> time_taken = {};
};

/// Evaluates the session's checkpoint, every checkpoint of the run (`eval_all`), or also future
/// checkpoints (`eval_forever`). The numbers go to each checkpoint's scalars.json; `train/` belongs
/// to the training, which uses only its own numbers. Returns the number of failed callbacks.
int evaluate_run(Console& console, const RunDirectory& directory, Session& session,
                 EvaluationStart start);

}  // namespace stepop
