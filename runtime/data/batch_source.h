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

/// A batch whose examples are chosen and not prepared yet.
struct TakenBatch {
  /// Prepares it, which may take long. Any thread may call it, once. The source must live.
  std::function<Batch()> load;
  /// The source's state behind this batch, as a text; null where the number of the next batch says
  /// all. It may be called when further batches were taken.
  std::function<std::string()> state = {};
};

/// The part of each batch that one of several processes takes: its neighbouring examples, of which
/// the first processes have one more when the batch does not divide.
struct BatchSlice {
  int64_t rank = 0;
  int64_t size = 1;  ///< Processes.

  /// How many of `count` examples are before this part, and in it.
  int64_t first(int64_t count) const {
    return rank * (count / size) + std::min(rank, count % size);
  }
  int64_t length(int64_t count) const { return count / size + (rank < count % size ? 1 : 0); }

  /// Leaves this part of `items`, one for each example of a batch. A part without examples becomes
  /// the batch's first one, so that every process runs every step; it counts for nothing then.
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
  int64_t batch = 0;  ///< The number of the first one.
  /// What TakenBatch::state gave behind the batch before it; empty where the number says all.
  std::string state = {};
};

/// Where a loader's batches come from: cheap choices, one after another, and expensive work that
/// several threads do at once.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  /// What errors begin with: `datasets/train`.
  virtual const std::string& name() const = 0;

  /// Whether `take` gives batch after batch, so that it must be called in order and by one thread
  /// at a time. Otherwise any batch may be asked for, by several threads at once.
  virtual bool is_in_order() const = 0;

  /// Chooses batch `number`, counted over all epochs. Calls `interrupt` while it waits for data;
  /// what that throws passes.
  virtual TakenBatch take(int64_t number, const InterruptCheck& interrupt) = 0;
};

/// The batches of a dataset, which must outlive this, as `order` must.
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

/// Of another source, which begins with batch `first`, those that one of several processes takes
/// when each takes one in turn. They are numbered from 0.
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
  int64_t next_;  ///< Of a source that gives batch after batch: the one that comes next.
};

}  // namespace stepop
