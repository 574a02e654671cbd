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

/// One split within one training step: the first request for one of its ops fetches the batch and
/// calls `step_op`; each closure runs at most once.
class SplitStep {
 public:
  /// `position` is the position that `context` shows to the iterator.
  SplitStep(std::string split, Iterator& iterator, const Context& context, Position& position,
            LoaderOptions loader_options, std::string stream_state);

  /// Begins a new step: releases the last step's batch, closures and graph.
  void begin();

  /// Runs a train op. Throws Error when `step_op` did not return it.
  Scalars train(const std::string& op);
  /// The result of a log op. It runs without gradients, with a forked random state and with the
  /// networks' buffers kept.
  const Logs& log(const std::string& op);

  /// This step's batch; fetches it if necessary.
  const Batch& batch();
  /// From now on `ops` work on these examples of `whole`, this step's batch.
  void take_part(const Batch& whole, int64_t begin, int64_t end);
  /// From now on the ops work on `batch`, with the closures that `step_op` returned for it before,
  /// if there are any.
  void take(Batch batch, std::optional<StepOps> ops = std::nullopt);
  /// The closures of this step, once one of them ran.
  const std::optional<StepOps>& closures() const { return ops_; }
  /// This step's batch if it was fetched; otherwise null.
  const Batch* batch_at_hand() const { return batch_ ? &*batch_ : nullptr; }
  /// This process's part of the batch of all processes.
  double share() const { return share_; }
  /// Takes the step's batch, also one that cannot be loaded: later steps get the batches that they
  /// would have got.
  void take_batch_anyway();
  /// Batches taken so far, over all epochs.
  int64_t batches_taken() const {
    return (loader_ ? loader_->position() : options_.first_batch) + lost_batches_;
  }
  /// Returns a function for the place in the split's stream after those batches, in the format of
  /// Progress::streams. The function may be called later, after further batches were taken. Null
  /// for a dataset with an index, and for a stream without a batch since this object's first
  /// position.
  std::function<std::string()> stream_state() const {
    return loader_ ? loader_->state() : std::function<std::string()>();
  }

 private:
  /// `trains`: for a train op. Otherwise the random state and the networks' buffers are restored
  /// after `step_op`.
  const StepOps& ops(bool trains);
  uint64_t fork_seed() const;

  std::string split_;
  Iterator& iterator_;
  const Context& context_;
  Position& position_;
  LoaderOptions options_;
  std::string begin_state_;  ///< For a stream.
  std::unique_ptr<Loader> loader_;
  int64_t lost_batches_ = 0;  ///< That could not be loaded.
  std::optional<Batch> batch_;
  double share_ = 1;
  std::optional<StepOps> ops_;
  OrderedMap<Logs> logs_;
};

/// The splits of a training step by name; each is made on the first request.
class SplitSteps {
 public:
  /// `interrupt` is called while the split train waits for data. The other arguments must outlive
  /// this.
  SplitSteps(Iterator& iterator, const Context& context, Position& position,
             InterruptCheck interrupt)
      : iterator_(iterator),
        context_(context),
        position_(position),
        interrupt_(std::move(interrupt)) {}

  SplitStep& operator[](const std::string& split);
  /// Begins a new step in all splits.
  void begin();
  /// Forgets the splits: each starts again at `position`.
  void clear() { splits_.clear(); }
  /// The same for the splits but train.
  void clear_others() {
    std::erase_if(splits_, [](const auto& split) { return split.first != "train"; });
  }
  /// Saves in the position how many batches were taken from each split but train, and the places in
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
