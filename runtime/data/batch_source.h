#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/base/interrupt.h"
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
  DatasetBatches(const Dataset& dataset, const BatchOrder& order)
      : dataset_(dataset), order_(order) {}
  const std::string& name() const override { return order_.name(); }
  bool is_in_order() const override { return false; }
  TakenBatch take(int64_t number, const InterruptCheck& interrupt) override;

 private:
  const Dataset& dataset_;
  const BatchOrder& order_;
};

}  // namespace stepop
