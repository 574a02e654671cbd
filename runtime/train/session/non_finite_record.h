#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "runtime/data/batch.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "runtime/train/networks/generators.h"
#include "runtime/train/optim/non_finite.h"
#include "runtime/train/run/run_directory.h"
#include "runtime/train/session/session.h"

namespace stepop {

/// An error that ends a training; its message ends with the command that resumes the training.
class ErrorWithCommand : public Error {
 public:
  using Error::Error;
};

/// Keeps the data that help to examine a NaN: where the last steps began, because a GPU reports a
/// NaN some steps later.
class NonFiniteRecorder {
 public:
  /// Both must outlive this.
  NonFiniteRecorder(Session& session, const RunDirectory& directory)
      : session_(session), directory_(directory) {}

  /// Records where a step begins: the session's position, and the stream's position by `stream`
  /// (SplitStep::stream_state). Called for each step with `on_nan: stop`.
  void begin_step(std::function<std::string()> stream);
  /// Whether the updates have to be read now: so many steps began since the last reading that the
  /// record would become large.
  bool is_full() const { return beginnings_.size() >= kMostSteps; }
  /// Every update so far was finite.
  void all_read() { beginnings_.clear(); }

  /// Writes to `train/non_finite/<step>/` a checkpoint from which the training begins that step
  /// again, and `batch.json` with the update, the finding, and the indices of the examples of each
  /// batch of the step; for a stream also the names of its records. Running statistics and an
  /// iterator's values, which a step changes before its update, are already changed in the
  /// checkpoint, and may hold the step's NaN. Returns the message for the user, which also says
  /// what cannot be saved. A state with weights that are not finite is not written. The message
  /// begins with data that are not finite, if any; `batch` is this process's current batch, or
  /// null.
  ErrorWithCommand record(const NonFinite& error, const Batch* batch) const;

  /// An error for the user that ends with the way to resume.
  ErrorWithCommand with_what_next(const std::string& text) const;

 private:
  static constexpr size_t kMostSteps = 200;

  struct Beginning {
    int64_t global_step = 0;
    int64_t epoch = 0;
    int64_t batch = 0;
    int64_t samples_seen = 0;
    GeneratorCopies random;
    std::function<std::string()> stream;
  };

  Checkpoint checkpoint_at(const Beginning& beginning) const;
  /// The place in the training's stream at that step; empty for a dataset with an index.
  std::string stream_at(const Beginning& beginning) const;
  /// Describes NaN and infinity in the batches of the step: in the current batch, or, if another
  /// batch may have been the cause, in all batches of the step, which are loaded again. Batches of
  /// a stream are not loaded again.
  std::string data_text(const NonFinite& error, const Beginning& beginning,
                        const Batch* batch) const;
  std::string batches_text(const NonFinite& error, const Beginning& beginning) const;

  Session& session_;
  const RunDirectory& directory_;
  std::deque<Beginning> beginnings_;  ///< The steps since the last reading.
};

}  // namespace stepop
