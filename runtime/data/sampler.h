#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/core/base/random.h"
#include "runtime/core/components/registry.h"
#include "runtime/data/dataset.h"

namespace stepop {

/// The order in which an epoch visits a dataset: a pure function of the epoch, so that a resumed
/// run jumps to its position. An index may come several times or not at all.
class Sampler {
 public:
  virtual ~Sampler() = default;

  /// The dataset's indices in the order of `epoch`, counted from 0. Every epoch has the same
  /// length. The orders of two epochs are kept in memory, 8 bytes an example.
  virtual std::vector<int64_t> order(int64_t epoch) const = 0;

  /// The algorithm of the order, for a sampler whose algorithm has changed over time. Checkpoints
  /// record it: a run resumes within an epoch only with the algorithm with which the epoch began.
  virtual std::string algorithm() const { return ""; }
};

/// A sampler that computes any part of an order on demand: no order is stored, so a dataset may
/// have any number of examples.
class ComputedSampler : public Sampler {
 public:
  /// The number of indices in each epoch.
  virtual int64_t length() const = 0;

  /// The indices at the positions `first` ... `first + count - 1` of `epoch`, all below `length()`.
  /// Several threads call this function at once.
  virtual std::vector<int64_t> indices(int64_t epoch, int64_t first, int64_t count) const = 0;

  std::vector<int64_t> order(int64_t epoch) const override { return indices(epoch, 0, length()); }
};

/// A sampler that also decides which examples share a batch, such as examples of nearly equal
/// length.
class BatchSampler : public Sampler {
 public:
  struct Epoch {
    std::vector<int64_t> order;
    std::vector<int64_t> ends;  ///< The end of each batch, as a position in `order`.
    bool has_rest = false;      ///< The last batch holds the remaining examples; `drop_last` leaves
                                ///< it out.
  };

  /// Batches of at most `batch_size` examples. Every epoch has the same number of examples and of
  /// batches. Two epochs are kept in memory.
  virtual Epoch epoch(int64_t epoch, int64_t batch_size) const = 0;

  std::vector<int64_t> order(int64_t epoch) const override { return this->epoch(epoch, 1).order; }
};

/// A sampler is built from its parameters, its dataset and a seed of (run, split).
using SamplerRegistry =
    Registry<std::unique_ptr<Sampler>(const Config&, const Dataset&, uint64_t seed)>;
SamplerRegistry& samplers();

struct BatchOrderOptions {
  /// The size of a batch; for a BatchSampler, the largest size.
  int64_t batch_size = 1;
  /// Leaves out an epoch's last batch when it is smaller than the others.
  bool drop_last = false;
  /// The largest number of batches in an epoch; 0 for no limit.
  int64_t max_batches = 0;
  /// The run's seed mixed with the split's name.
  uint64_t seed = 0;
};

/// The examples of each batch: a pure function of (seed, epoch, batch), independent of earlier
/// calls and of the thread.
class BatchOrder {
 public:
  /// Throws an Error that begins with `name` for an empty dataset, and for `drop_last` with a
  /// dataset smaller than one batch.
  BatchOrder(std::string name, std::unique_ptr<Sampler> sampler, BatchOrderOptions options);

  int64_t batches_per_epoch() const { return batches_per_epoch_; }
  int64_t batch_size() const { return options_.batch_size; }
  const std::string& name() const { return name_; }
  /// The sampler's algorithm.
  std::string algorithm() const { return sampler_->algorithm(); }

  /// One line when batches hold fewer examples than the config requests because the dataset has too
  /// few; else empty.
  std::string warning() const;

  /// The number of examples in the first `batches` batches of `epoch`; it is the same in all
  /// epochs, except with a BatchSampler.
  int64_t examples_in(int64_t batches, int64_t epoch = 0) const;

  /// The number of examples in a batch; `batch` counts over all epochs.
  int64_t size_of(int64_t batch) const { return place_of(batch).count; }

  /// The dataset's indices of a batch; `batch` counts over all epochs.
  std::vector<int64_t> indices(int64_t batch) const;

  /// One generator for each example of a batch; each is a function of (seed, epoch, position).
  std::vector<Random> randoms(int64_t batch) const;

 private:
  /// A batch's place within an epoch.
  struct Place {
    int64_t epoch;
    int64_t first;
    int64_t count;
  };

  Place place_of(int64_t batch) const;
  std::shared_ptr<const BatchSampler::Epoch> stored(int64_t epoch) const;

  std::string name_;
  std::unique_ptr<Sampler> sampler_;
  const ComputedSampler* computed_;  ///< `sampler_`, or null when its orders are stored.
  const BatchSampler* batches_;      ///< `sampler_`, or null when it is not a BatchSampler.
  BatchOrderOptions options_;
  int64_t size_ = 0;
  int64_t batches_per_epoch_ = 0;

  mutable std::mutex mutex_;
  /// The orders of two epochs: around an epoch's end, workers need both.
  mutable std::shared_ptr<const BatchSampler::Epoch> stored_[2];
  mutable int64_t stored_epoch_[2] = {-1, -1};
};

}  // namespace stepop

/// Registers a class with a constructor from (Params, const Config&, const Dataset&, uint64_t
/// seed), without the Config if it does not want it.
#define STEPOP_REGISTER_SAMPLER(name, Class, ...)                                           \
  STEPOP_REGISTER(                                                                          \
      ::stepop::samplers(), #name,                                                          \
      [](const ::stepop::Config& params, const ::stepop::Dataset& dataset, uint64_t seed) { \
        return ::stepop::make_component<Class>(params, dataset, seed);                      \
      },                                                                                    \
      ::stepop::about_class<Class>(__VA_ARGS__))
