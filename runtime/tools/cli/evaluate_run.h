#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "runtime/core/log/console.h"
#include "runtime/tools/cli/checkpoint_choice.h"
#include "runtime/train/loop/session.h"
#include "runtime/train/run/run_directory.h"

namespace stepop {

/// What evaluations without a training need beside their session.
struct EvaluationStart {
  std::string time;  ///< That of a run which this start made; empty: the run was there.
  std::string git;
  /// The checkpoint that the session holds, whose tensors are not looked at; none when there is
  /// none yet, or its weights are those of init_from.
  std::optional<ChosenCheckpoint> checkpoint;
  std::chrono::steady_clock::time_point deadline;  ///< For eval_forever.
  /// Called when it has taken a time of its own, by which its config is in configs/.
  std::function<void(const std::string& time)> time_taken = {};
};

/// Evaluates the session's checkpoint, every one of the run (`eval_all`), or also those to come
/// (`eval_forever`). Its numbers go to the scalars.json of each: `train/` is the training's, which
/// goes by what it logged itself. Returns how many callbacks failed.
int evaluate_run(Console& console, const RunDirectory& directory, Session& session,
                 EvaluationStart start);

}  // namespace stepop
