#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "runtime/data/batch.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "runtime/train/loop/session.h"
#include "runtime/train/optim/non_finite.h"
#include "runtime/train/run/run_directory.h"

namespace stepop {

/// What ends a training; the message ends with the command that resumes it.
class ErrorWithCommand : public Error {
 public:
  using Error::Error;
};

/// Keeps what one needs to look at a NaN: where the last steps began, since a GPU reports it some
/// steps later.
class NonFiniteRecorder {
 public:
  /// Both must outlive this.
  NonFiniteRecorder(Session& session, const RunDirectory& directory)
      : session_(session), directory_(directory) {}

  /// A step begins where the session is, and where `stream` says of a stream, as
  /// SplitStep::stream_state has it. To be called for each with `on_nan: stop`.
  void begin_step(std::function<std::string()> stream);
  /// Whether so many steps began since the last reading that the next one is due: what is kept of
  /// them stays small.
  bool is_full() const { return beginnings_.size() >= kMostSteps; }
  /// Every update so far was finite.
  void all_read() { beginnings_.clear(); }

  /// Writes to `train/non_finite/<step>/` a checkpoint with which the training begins that step
  /// again, and `batch.json` with the update, what was found, and the indices of the examples of
  /// each batch of the step, of a stream also the names of its records. What a step changes before
  /// its update, running statistics and an iterator's own values, has changed in the checkpoint.
  /// Returns the message for the user; what cannot be saved is in it. A state whose weights are not
  /// finite themselves is not written. Data that are not finite are named before all else; `batch`,
  /// of this process, is at hand, or null.
  ErrorWithCommand record(const NonFinite& error, const Batch* batch) const;

  /// An error for the user that ends with how to resume.
  ErrorWithCommand with_what_next(const std::string& text) const;

 private:
  static constexpr size_t kMostSteps = 200;

  struct Beginning {
    int64_t global_step = 0;
    int64_t epoch = 0;
    int64_t batch = 0;
    int64_t samples_seen = 0;
    State random;  ///< Of the generators.
    std::function<std::string()> stream;
  };

  Checkpoint checkpoint_at(const Beginning& beginning) const;
  /// The place in the training's stream at that step; empty for a dataset with an index.
  std::string stream_at(const Beginning& beginning) const;
  /// What is not finite in the batches of the step: of the one at hand, or where another one may
  /// have been the cause, of all of them, which are loaded again; not those of a stream.
  std::string data_text(const NonFinite& error, const Beginning& beginning,
                        const Batch* batch) const;
  std::string batches_text(const NonFinite& error, const Beginning& beginning) const;

  Session& session_;
  const RunDirectory& directory_;
  std::deque<Beginning> beginnings_;  ///< Of the steps since the last reading.
};

}  // namespace stepop
