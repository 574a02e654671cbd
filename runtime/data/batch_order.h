#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/data/dataset.h"
#include "runtime/data/sampler.h"

namespace stepop {

struct BatchOrderOptions {
  int64_t batch_size = 1;
  /// Leaves out an epoch's last batch when it is smaller than the others.
  bool drop_last = false;
  /// Cuts an epoch; 0 for no limit.
  int64_t max_batches = 0;
  /// The run's seed mixed with the split's name.
  uint64_t seed = 0;
};

/// Which examples are in which batch: a pure function of (seed, epoch, batch), whatever was asked
/// for before and from whichever thread.
class BatchOrder {
 public:
  /// Throws Error, which `name` begins, for an empty dataset, and for `drop_last` with a dataset
  /// that is smaller than one batch.
  BatchOrder(std::string name, std::unique_ptr<Sampler> sampler, BatchOrderOptions options);

  int64_t batches_per_epoch() const { return batches_per_epoch_; }
  int64_t batch_size() const { return options_.batch_size; }
  const std::string& name() const { return name_; }

  /// The number of examples in the first `batches` batches of an epoch.
  int64_t examples_in(int64_t batches) const;

  /// The dataset's indices of a batch; `batch` counts on over the epochs' ends.
  std::vector<int64_t> indices(int64_t batch) const;

  /// One generator an example of that batch, each a function of (seed, epoch, position).
  std::vector<Random> randoms(int64_t batch) const;

 private:
  std::shared_ptr<const std::vector<int64_t>> epoch_order(int64_t epoch) const;

  std::string name_;
  std::unique_ptr<Sampler> sampler_;
  BatchOrderOptions options_;
  int64_t size_ = 0;
  int64_t batches_per_epoch_ = 0;

  mutable std::mutex mutex_;
  /// The orders of two epochs: around an epoch's end, workers ask for both.
  mutable std::shared_ptr<const std::vector<int64_t>> cached_[2];
  mutable int64_t cached_epoch_[2] = {-1, -1};
};

}  // namespace stepop
