#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/interrupt.h"
#include "runtime/data/batch.h"
#include "runtime/data/dataset.h"
#include "runtime/data/sampler.h"

namespace stepop {

/// A batch whose examples are chosen but not yet prepared.
struct TakenBatch {
  /// Prepares the batch, which may take long. Any thread may call it, once, while the source
  /// exists.
  std::function<Batch()> load;
  /// Returns the source's state after this batch, as a text; null where the number of the next
  /// batch is the whole state. It may be called after further batches were taken.
  std::function<std::string()> state = {};
};

/// The part of each batch that one of several processes takes: a run of neighbouring examples. When
/// the batch does not divide evenly, the first processes take one example more.
struct BatchSlice {
  int64_t rank = 0;
  int64_t size = 1;  ///< The number of processes.

  /// How many of `count` examples come before this part, and how many are in it.
  int64_t first(int64_t count) const {
    return rank * (count / size) + std::min(rank, count % size);
  }
  int64_t length(int64_t count) const { return count / size + (rank < count % size ? 1 : 0); }

  /// Reduces `items`, one for each example of a batch, to this part. A part without examples
  /// becomes the batch's first example, so that every process runs every step; that example then
  /// counts for nothing.
  template <class Item>
  void cut(std::vector<Item>& items) const {
    if (size == 1) return;
    const auto count = static_cast<int64_t>(items.size());
    const int64_t kept = length(count);
    const auto begin = items.begin() + (kept == 0 ? 0 : first(count));
    std::vector<Item> part(std::make_move_iterator(begin),
                           std::make_move_iterator(begin + std::max<int64_t>(kept, 1)));
    items = std::move(part);
  }
};

/// Where the batches of a source begin.
struct SourceStart {
  int64_t batch = 0;  ///< The number of the first batch.
  /// What TakenBatch::state returned for the batch before; empty where the number is the whole
  /// state.
  std::string state = {};
};

/// Where a loader's batches come from. Choosing a batch is cheap and happens in order; preparing a
/// batch is expensive and runs in several threads at once.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  /// What errors begin with: `datasets/train`.
  virtual const std::string& name() const = 0;

  /// Whether `take` must be called in the order of the batches and by one thread at a time.
  /// Otherwise any batch may be requested, by several threads at once.
  virtual bool is_in_order() const = 0;

  /// Chooses batch `number`, counted over all epochs. Calls `interrupt` while it waits for data;
  /// exceptions from `interrupt` are passed on.
  virtual TakenBatch take(int64_t number, const InterruptCheck& interrupt) = 0;
};

/// The batches of a dataset. The dataset and `order` must outlive this object.
class DatasetBatches : public BatchSource {
 public:
  DatasetBatches(const Dataset& dataset, const BatchOrder& order, BatchSlice slice = {})
      : dataset_(dataset), order_(order), slice_(slice) {}
  const std::string& name() const override { return order_.name(); }
  bool is_in_order() const override { return false; }
  TakenBatch take(int64_t number, const InterruptCheck& interrupt) override;

 private:
  const Dataset& dataset_;
  const BatchOrder& order_;
  const BatchSlice slice_;
};

/// The batches of another source that one of several processes takes when the processes take turns.
/// The other source begins with batch `first`; the batches here are numbered from 0.
class EveryNthBatch : public BatchSource {
 public:
  EveryNthBatch(std::shared_ptr<BatchSource> source, int64_t first, int64_t rank, int64_t processes)
      : source_(std::move(source)), first_(first + rank), stride_(processes), next_(first) {}
  const std::string& name() const override { return source_->name(); }
  bool is_in_order() const override { return source_->is_in_order(); }
  TakenBatch take(int64_t number, const InterruptCheck& interrupt) override;

 private:
  std::shared_ptr<BatchSource> source_;
  int64_t first_;
  int64_t stride_;
  int64_t next_;  ///< The next batch of a source that is in order.
};

}  // namespace stepop
