#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runtime/data/loader.h"
#include "runtime/train/iterator/iterator.h"
#include "runtime/train/step/call_op.h"

namespace stepop {

/// One split within one training step: its batch is fetched and `step_op` called when an op of it
/// is first asked for, and each closure runs at most once.
class SplitStep {
 public:
  /// `position` is the one that `context` shows to the iterator.
  SplitStep(std::string split, Iterator& iterator, const Context& context, Position& position,
            LoaderOptions loader_options, std::string stream_state);

  /// Begins a new step: the last one's batch, closures and graph are released.
  void begin();

  /// Runs a train op. Throws Error when `step_op` did not return it.
  Scalars train(const std::string& op);
  /// The result of a log op, without gradients, with the random state forked and the buffers of
  /// networks kept.
  const Logs& log(const std::string& op);

  /// This step's batch; fetches it when need be.
  const Batch& batch();
  /// The same where it was fetched; else null.
  const Batch* batch_at_hand() const { return batch_ ? &*batch_ : nullptr; }
  /// The part of the batch of all processes that this one has.
  double share() const { return share_; }
  /// Batches taken so far, over all epochs.
  int64_t batches_taken() const { return loader_ ? loader_->position() : options_.first_batch; }
  /// The place in the split's stream behind those batches, as Progress::streams has it; it may be
  /// asked for later, when further batches were taken. Null for a dataset with an index, and for a
  /// stream of which no batch was taken since the position that this began with.
  std::function<std::string()> stream_state() const {
    return loader_ ? loader_->state() : std::function<std::string()>();
  }

 private:
  /// `trains`: for a train op; else what `step_op` changes beside the iterator's own is put back.
  const StepOps& ops(bool trains);
  uint64_t fork_seed() const;

  std::string split_;
  Iterator& iterator_;
  const Context& context_;
  Position& position_;
  LoaderOptions options_;
  std::string begin_state_;  ///< Of a stream.
  std::unique_ptr<Loader> loader_;
  std::optional<Batch> batch_;
  double share_ = 1;
  std::optional<StepOps> ops_;
  OrderedMap<Logs> logs_;
};

/// The splits of a training step by name, each made when it is first asked for.
class SplitSteps {
 public:
  /// `interrupt` is called while the split train waits for data. The others must outlive this.
  SplitSteps(Iterator& iterator, const Context& context, Position& position,
             InterruptCheck interrupt)
      : iterator_(iterator),
        context_(context),
        position_(position),
        interrupt_(std::move(interrupt)) {}

  SplitStep& operator[](const std::string& split);
  /// Begins a new step in all of them.
  void begin();
  /// Forgets them: each begins again where `position` is.
  void clear() { splits_.clear(); }
  /// Notes in the position how many batches were taken of each split but train, and the places in
  /// streams.
  void save_position();

 private:
  LoaderOptions loader_options(const std::string& split) const;

  Iterator& iterator_;
  const Context& context_;
  Position& position_;
  InterruptCheck interrupt_;
  std::map<std::string, std::unique_ptr<SplitStep>> splits_;
};

}  // namespace stepop
