#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "runtime/core/base/interrupt.h"
#include "runtime/data/batch.h"
#include "runtime/data/batch_source.h"
#include "runtime/data/dataset.h"
#include "runtime/data/sampler.h"

namespace stepop {

class Profile;

struct LoaderOptions {
  /// Threads that prepare batches; 0 prepares each in `next()`.
  int64_t workers = 0;
  /// Seconds. Batches that are prepared in less are prepared in `next()`, and the workers start
  /// only when some take longer: waking a worker and taking over what it wrote costs tens of
  /// microseconds. 0 starts them at once, as a source whose batches come in order does always: what
  /// it waits for is to arrive while the loop computes.
  double quick = 0;
  /// Batches that each worker may be ahead.
  int64_t prefetch = 2;
  /// Number of the first batch, counted over all epochs: resuming is a jump.
  int64_t first_batch = 0;
  /// Number of the batch before which to stop; -1 for none: epoch follows epoch.
  int64_t end_batch = -1;
  /// Where `next()` puts the tensors.
  c10::Device device = c10::kCPU;
  /// Whether images get their channels last in memory, as `Batch::channels_last` does.
  bool channels_last = false;
  /// Called while `next()` waits for a worker, and after a batch was prepared. When it throws, that
  /// batch counts as not taken.
  InterruptCheck interrupt = {};
  /// Owns what the source refers to, such as the dataset and the order. With it, a loader's end
  /// waits at most half a second for workers that are in the middle of an example, such as a read
  /// from a disk that hangs; then it leaves them behind, and they keep this alive. Without it, the
  /// loader's end waits for them.
  std::shared_ptr<const void> owner = {};
  /// Records when workers prepare batches; may be null.
  std::shared_ptr<Profile> profile = {};
};

/// The batches of a source in order. The number of workers changes the speed and nothing else.
class Loader {
 public:
  /// What `source` refers to must outlive the loader, unless `owner` owns it. A source whose
  /// batches come in order gives `first_batch` first.
  Loader(std::shared_ptr<BatchSource> source, LoaderOptions options);
  /// The same for `dataset` and `order`.
  Loader(const Dataset& dataset, const BatchOrder& order, LoaderOptions options)
      : Loader(std::make_shared<DatasetBatches>(dataset, order), std::move(options)) {}
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next batch, on the device. Throws Error with the split and the example's index for
  /// whatever the dataset threw, of any type. Must not be called after the last batch.
  Batch next();

  /// Whether `next()` has another batch.
  bool has_next() const { return options_.end_batch < 0 || next_batch_ < options_.end_batch; }

  /// The number of the batch that `next()` will give, counted over all epochs.
  int64_t position() const { return next_batch_; }

  /// The source's state behind the last batch that `next()` gave, as TakenBatch has it; null before
  /// the first batch, and for a source without one.
  const std::function<std::string()>& state() const { return state_; }

  /// The number of workers of this process that were left behind and are still busy. While there
  /// are any, the process must end by `_exit`, which destroys nothing that they use.
  static int64_t workers_left_behind();

 private:
  class Workers;
  struct Prepared;

  Prepared prepare_one(bool is_first);
  Prepared prepare_apart();
  void start_workers(const LoaderOptions& options);

  std::shared_ptr<BatchSource> source_;
  LoaderOptions options_;
  int64_t next_batch_;
  std::function<std::string()> state_;
  int slow_batches_ = 0;              ///< In a row.
  std::shared_ptr<Workers> workers_;  ///< Each of its threads keeps it alive.
};

}  // namespace stepop
