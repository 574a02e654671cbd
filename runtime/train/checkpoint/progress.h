#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace stepop {

/// Every number of a run that resumes.
struct Progress {
  int64_t global_step = 0;        ///< Training steps that are complete.
  int64_t epoch = 0;              ///< Epochs that are complete.
  int64_t batch = 0;              ///< Batches of this epoch that are complete.
  int64_t batches_per_epoch = 0;  ///< 0 before the first training.
  /// In the training dataset; 0 before the first training, and for a stream that does not know it.
  int64_t train_examples = 0;
  int64_t samples_seen = 0;  ///< Training examples so far; one counts each time it is seen.
  double seconds = 0;        ///< Training time of all starts.
  /// Batches that the logs of other splits took.
  std::map<std::string, int64_t> batches_taken;
  /// The place behind the last batch of each split that is a stream, see
  /// data/record_sequence.h.
  std::map<std::string, std::string> streams;
  /// The folder of an evaluation that follows this checkpoint, relative to the run; else empty. A
  /// run that was killed in it resumes it.
  std::string evaluation_folder;
  /// Those of them that are due there, by their names; empty for that of `eval_hook`.
  std::vector<std::string> evaluations;
  /// What gives the order of the training examples, as Sampler::algorithm has it.
  std::string order_algorithm;
  /// The hooks before the next step were called: what they did is in the state, and they are not
  /// called again. So it is when a training ends while it waits for the batch of that step.
  bool has_begun_step = false;
  /// That trained together up to here.
  int64_t processes = 1;
  /// What lengths in epochs and in parts of the training were computed with; 0 where none is.
  int64_t planned_steps = 0;
  int64_t planned_steps_per_epoch = 0;
  /// Each batch is trained in so many parts, as memory ran out before (`on_out_of_memory`).
  int64_t batch_parts = 1;
  /// How often the training went back to a checkpoint, for a hook that asked for that.
  int64_t rewinds = 0;
  /// Why a hook ended the training after this step; empty when none did.
  std::string stopped_by;

  /// Epochs that are complete, and the part of this one: 30.4.
  double fractional_epoch() const;

  /// Continues behind the batches of `other`, in place of its own.
  void take_place_in_data(const Progress& other);

  std::string to_json() const;
  /// Throws Error when `text` is not what `to_json` wrote.
  static Progress from_json(const std::string& text);
};

/// A training that goes back to its last checkpoint, or to its beginning.
struct Rewind {
  std::string reason;
  Progress position;  ///< Where it was, with the `batch_parts` and `rewinds` to continue with.
  bool leaves_out = false;  ///< The batches up to this position are left out.
};

}  // namespace stepop
