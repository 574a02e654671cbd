#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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
  /// The number of threads that prepare batches; 0 prepares each batch in `next()`.
  int64_t workers = 0;
  /// Seconds. While batches take less, or less than a twentieth of the time between two, `next()`
  /// prepares them, and the workers start only when batches take longer: waking a worker and moving
  /// its data between cores costs tens of microseconds, and it wants a core of its own. 0 starts
  /// the workers at once. A source whose batches come in order always starts them at once, so that
  /// its data arrives while the loop computes.
  double quick = 0;
  /// The number of batches that each worker may prepare ahead.
  int64_t prefetch = 2;
  /// The number of the first batch, counted over all epochs: resuming is a jump.
  int64_t first_batch = 0;
  /// The number of the batch before which the loader stops; -1 for no end: epoch follows epoch.
  int64_t end_batch = -1;
  /// Seconds after which an example that still loads is an error; 0 waits without end. Each batch
  /// is then prepared by another thread, also with no workers or with quick batches. Needs `owner`,
  /// as that thread is abandoned.
  double timeout = 0;
  /// The device of the batches that `next()` returns.
  c10::Device device = c10::kCPU;
  /// Whether images get their channels last in memory, as `Batch::channels_last` does.
  bool channels_last = false;
  /// Called while `next()` waits for a worker, and after a batch was prepared. When it throws, that
  /// batch counts as not taken.
  InterruptCheck interrupt = {};
  /// Owns the objects to which the source refers, such as the dataset and the order. With an owner,
  /// the loader's destructor waits at most half a second for workers that are in the middle of an
  /// example, such as a read from a disk that hangs; then it abandons them, and they keep the owner
  /// alive. Without an owner, the destructor waits for the workers.
  std::shared_ptr<const void> owner = {};
  /// Records when workers prepare batches; may be null.
  std::shared_ptr<Profile> profile = {};
};

/// The batches of a source in order. The number of workers changes only the speed.
class Loader {
 public:
  /// The objects to which `source` refers must outlive the loader, unless `owner` owns them. A
  /// source whose batches come in order must give `first_batch` first.
  Loader(std::shared_ptr<BatchSource> source, LoaderOptions options);
  /// The same for `dataset` and `order`.
  Loader(const Dataset& dataset, const BatchOrder& order, LoaderOptions options)
      : Loader(std::make_shared<DatasetBatches>(dataset, order), std::move(options)) {}
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next batch, on the device. An exception of any type from the dataset becomes an Error with
  /// the split and the example's index. Must not be called after the last batch.
  Batch next();

  /// Whether `next()` has another batch.
  bool has_next() const { return options_.end_batch < 0 || next_batch_ < options_.end_batch; }

  /// The number of the batch that `next()` will return, counted over all epochs.
  int64_t position() const { return next_batch_; }

  /// TakenBatch::state of the last batch that `next()` returned; null before the first batch, and
  /// for a source without a state.
  const std::function<std::string()>& state() const { return state_; }

  /// The number of this process's workers that were abandoned and are still busy. While there are
  /// any, the process must end by `_exit`, which destroys no objects that they use.
  static int64_t workers_left_behind();

 private:
  class Workers;
  struct Prepared;
  /// A batch whose copy to the device began before it is asked for.
  struct Ahead;

  /// Begins the copy of the next batch, if a worker has it, on a stream of its own, so that it runs
  /// beside what the device computes.
  void copy_ahead();

  Prepared prepare_one(bool is_first);
  Prepared prepare_apart();
  void start_workers(const LoaderOptions& options);

  std::shared_ptr<BatchSource> source_;
  LoaderOptions options_;
  int64_t next_batch_;
  std::function<std::string()> state_;
  int slow_batches_ = 0;  ///< The number of slow batches in a row.
  /// When the last batch was prepared without a worker.
  std::chrono::steady_clock::time_point last_prepared_ = {};
  std::shared_ptr<Workers> workers_;  ///< Each worker thread keeps this object alive.
  std::unique_ptr<Ahead> ahead_;
  std::optional<c10::Stream> copies_;  ///< The stream of copies that run beside the device's work.
  bool may_copy_ahead_ = true;         ///< False after the driver of the device had no memory.
};

}  // namespace stepop
