#include "runtime/data/loader.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/interrupt_scope.h"
#include "runtime/core/measure/one_thread.h"
#include "runtime/core/measure/profile.h"
#include "runtime/data/load_watch.h"

namespace stepop {

/// The changes to a batch before the loader returns it.
struct BatchFinish {
  explicit BatchFinish(const LoaderOptions& options)
      : channels_last(options.channels_last), pin(!options.device.is_cpu()) {}
  bool channels_last;
  bool pin;
};

namespace {

/// One slow batch may come from a thread that waited for its core. This many slow batches in a row
/// come from the dataset.
constexpr int kSlowInARow = 3;
/// Of the time between two batches: a worker could not save more than that.
constexpr double kSmallPart = 0.05;
/// If a first batch takes this many times longer than a fast batch, no second is timed.
constexpr double kVerySlow = 100;
/// How often a wait checks whether it should end.
constexpr std::chrono::milliseconds kInterruptEvery{50};
/// How long a loader's destructor waits for workers that are in the middle of an example.
constexpr std::chrono::milliseconds kPatience{500};

std::atomic<int64_t> left_behind = 0;

/// Rethrows the current exception with the source's name at the beginning of its message.
[[noreturn]] void rethrow_of(const BatchSource& source) {
  try {
    throw;
  } catch (const Interrupted&) {
    throw;
  } catch (...) {
    throw Error(fmt::format("{}: {}", source.name(), text_of_current_exception()));
  }
}

TakenBatch take(BatchSource& source, int64_t number, const InterruptCheck& interrupt) {
  try {
    return source.take(number, interrupt);
  } catch (...) {
    rethrow_of(source);
  }
}

Batch prepare(const BatchSource& source, const TakenBatch& taken, BatchFinish finish,
              const InterruptCheck& interrupt) {
  const InterruptScope scope(interrupt ? interrupt : InterruptScope::current());
  try {
    Batch batch = taken.load();
    if (finish.channels_last) batch = batch.channels_last();
    if (!finish.pin) return batch;
    OrderedMap<at::Tensor> pinned = batch.tensors();
    for (auto& [key, tensor] : pinned) {
      const bool can_be_pinned = tensor.device().is_cpu() && tensor.layout() == at::kStrided;
      if (can_be_pinned) tensor = tensor.pin_memory();
    }
    return {std::move(pinned), batch.texts(), batch.indices()};
  } catch (...) {
    rethrow_of(source);
  }
}

}  // namespace

/// A prepared batch, and the source's state after it.
struct Loader::Prepared {
  Batch batch;
  std::function<std::string()> state;
};

struct Loader::Ahead {
  Prepared prepared;                 ///< Its batch is on the device, unless memory ran out.
  std::optional<c10::Event> copied;  ///< When the copy is done; nothing without a copy.
};

/// Threads that each take the next batch number, prepare that batch, and put it into its slot of a
/// ring.
class Loader::Workers : public std::enable_shared_from_this<Loader::Workers> {
 public:
  Workers(std::shared_ptr<BatchSource> source, const LoaderOptions& options)
      : source_(std::move(source)),
        is_in_order_(source_->is_in_order()),
        end_(options.end_batch),
        finish_(options),
        interrupt_(options.interrupt),
        owner_(options.owner),
        profile_(options.profile),
        timeout_(options.timeout),
        watches_(static_cast<size_t>(options.timeout > 0 ? options.workers : 0)),
        taken_(options.first_batch),
        given_(options.first_batch),
        slots_(static_cast<size_t>(options.workers * std::max<int64_t>(options.prefetch, 1))) {}

  void start(int64_t count) {
    try {
      for (int64_t i = 0; i < count; ++i) {
        threads_.emplace_back([self = shared_from_this(), i] { self->run(i); });
      }
    } catch (const std::exception& error) {
      const size_t started = threads_.size();
      stop();
      throw Error(
          fmt::format("{}: cannot start more than {} loader threads: {}; n_data_processes "
                      "sets their number",
                      source_->name(), started, error.what()));
    }
  }

  /// Ends the threads, or abandons threads that do not end in time.
  void stop() {
    std::unique_lock lock(mutex_);
    stopping_ = true;  // also ends a wait for data
    changed_.notify_all();
    const auto all_ended = [&] { return ended_ == threads_.size(); };
    const bool is_left = owner_ && !changed_.wait_for(lock, kPatience, all_ended);
    if (is_left) {
      are_left_ = true;
      left_behind += static_cast<int64_t>(threads_.size() - ended_);
    }
    lock.unlock();
    for (auto& thread : threads_) is_left ? thread.detach() : thread.join();
    threads_.clear();
  }

  /// Whether `next` returns a batch without a wait.
  bool is_ready() {
    const std::lock_guard lock(mutex_);
    const Slot& slot = slots_[static_cast<size_t>(given_) % slots_.size()];
    return slot.ready && !slot.error;
  }

  Prepared next() {
    std::unique_lock lock(mutex_);
    auto& slot = slots_[static_cast<size_t>(given_) % slots_.size()];
    while (!changed_.wait_for(lock, kInterruptEvery, [&] { return slot.ready; })) {
      if (interrupt_) interrupt_();
      if (slot.watch != nullptr) check_time(*slot.watch);
    }
    if (slot.error) std::rethrow_exception(slot.error);
    Prepared prepared = std::move(slot.prepared);
    slot = {};
    ++given_;
    lock.unlock();
    changed_.notify_all();
    return prepared;
  }

 private:
  struct Slot {
    bool ready = false;
    Prepared prepared;
    std::exception_ptr error;
    const LoadWatch* watch = nullptr;  ///< Of the thread that prepares the batch.
  };

  void check_time(const LoadWatch& watch) const {
    const auto what = watch.overdue(timeout_);
    if (!what) return;
    throw Error(
        fmt::format("{}: {}: nothing came for {:g} s (data_timeout): look at where this is "
                    "read from; a larger data_timeout waits longer",
                    source_->name(), *what, timeout_));
  }

  bool may_take() const {
    if (is_taking_ || has_failed_) return false;
    return taken_ < given_ + static_cast<int64_t>(slots_.size()) && (end_ < 0 || taken_ < end_);
  }

  void run(int64_t worker) {
    LoadWatch* const watch = timeout_ > 0 ? &watches_[static_cast<size_t>(worker)] : nullptr;
    const LoadWatch::Scope scope(watch);
    work(fmt::format("{} worker {}", source_->name(), worker), watch);
    const std::lock_guard lock(mutex_);
    ++ended_;
    if (are_left_) --left_behind;
    changed_.notify_all();
  }

  void work(const std::string& name, LoadWatch* watch) {
    const at::NoGradGuard no_grad;
    ::pthread_setname_np(::pthread_self(), "loader");
    compute_with_one_thread();
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stopping_ || may_take(); });
      if (stopping_) return;
      const int64_t number = taken_++;
      is_taking_ = is_in_order_;
      slots_[static_cast<size_t>(number) % slots_.size()].watch = watch;
      if (watch != nullptr) watch->begin(fmt::format("the next examples, of batch {}", number));
      lock.unlock();
      Slot done{.ready = true, .prepared = {}, .error = nullptr, .watch = nullptr};
      bool is_mine = is_in_order_;
      try {
        const ThreadSpan span(profile_.get(), name, "prepare a batch");
        TakenBatch taken = take(*source_, number, waiting_);
        if (is_mine) {
          lock.lock();
          is_mine = is_taking_ = false;
          lock.unlock();
          changed_.notify_all();
        }
        done.prepared = {prepare(*source_, taken, finish_, waiting_), std::move(taken.state)};
      } catch (...) {
        done.error = std::current_exception();
      }
      lock.lock();
      // After a batch that could not be taken, there are no further batches.
      if (is_mine) has_failed_ = true;
      slots_[static_cast<size_t>(number) % slots_.size()] = std::move(done);
      changed_.notify_all();
    }
  }

  const std::shared_ptr<BatchSource> source_;
  const bool is_in_order_;
  const int64_t end_;
  const BatchFinish finish_;
  const InterruptCheck interrupt_;
  const std::shared_ptr<const void> owner_;
  const std::shared_ptr<Profile> profile_;
  const double timeout_;
  std::deque<LoadWatch> watches_;  ///< One for each thread; none without a timeout.
  /// Ends a thread's wait for data.
  const InterruptCheck waiting_ = [this] {
    if (stopping_) throw Interrupted("the loader ends");
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> stopping_ = false;  ///< Set with `mutex_` held.
  bool is_taking_ = false;              ///< One of the threads is in `take` of a source in order.
  bool has_failed_ = false;
  bool are_left_ = false;
  size_t ended_ = 0;
  int64_t taken_;
  int64_t given_;
  std::vector<Slot> slots_;
  std::vector<std::thread> threads_;
};

Loader::Loader(std::shared_ptr<BatchSource> source, LoaderOptions options)
    : source_(std::move(source)), options_(std::move(options)), next_batch_(options_.first_batch) {
  if (source_->is_in_order() || options_.timeout > 0) options_.quick = 0;
  if (options_.workers > 0 && options_.quick <= 0) start_workers(options_);
}

Loader::~Loader() {
  if (workers_) workers_->stop();
}

int64_t Loader::workers_left_behind() { return left_behind; }

void Loader::start_workers(const LoaderOptions& options) {
  const auto workers = std::make_shared<Workers>(source_, options);
  workers->start(options.workers);
  workers_ = workers;
}

Batch Loader::next() {
  const at::NoGradGuard no_grad;
  const bool is_first = next_batch_ == options_.first_batch && options_.quick > 0;
  Batch batch;
  if (ahead_) {
    const c10::Stream here =
        c10::impl::VirtualGuardImpl(options_.device.type()).getStream(options_.device);
    batch = std::move(ahead_->prepared.batch);
    state_ = std::move(ahead_->prepared.state);
    if (ahead_->copied) {
      ahead_->copied->block(here);
      // Its memory belongs to the stream of the copy, which waits for this one before it is reused.
      for (const auto& [key, tensor] : batch.tensors()) {
        if (!tensor.is_cpu()) tensor.record_stream(here);
      }
    }
    ahead_.reset();
  } else {
    Prepared prepared = workers_ && !is_first ? workers_->next() : prepare_one(is_first);
    batch = std::move(prepared.batch);
    state_ = std::move(prepared.state);
  }
  ++next_batch_;
  if (options_.device.is_cpu()) return batch;
  batch = batch.to(options_.device);
  copy_ahead();
  return batch;
}

void Loader::copy_ahead() {
  if (!may_copy_ahead_ || !workers_ || !has_next() || !workers_->is_ready()) return;
  const at::Device device = options_.device;
  try {
    // Streams take memory of the device as well.
    if (!copies_) {
      copies_ = c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
    }
    const c10::StreamGuard beside(*copies_);
    ahead_ = std::make_unique<Ahead>(Ahead{workers_->next(), std::nullopt});
    Batch there = ahead_->prepared.batch.to(device);
    c10::Event copied(device.type());
    copied.record(*copies_);
    ahead_->prepared.batch = std::move(there);
    ahead_->copied = std::move(copied);
  } catch (const c10::OutOfMemoryError&) {
    // It is copied when it is asked for, and what held the memory is gone.
  } catch (const c10::AcceleratorError&) {
    // The driver has no memory left. An error that breaks the device is thrown again by its next
    // use.
    may_copy_ahead_ = false;
  }
}

Loader::Prepared Loader::prepare_one(bool is_first) {
  const auto start = std::chrono::steady_clock::now();
  const bool may_be_slow = is_first && options_.workers > 0 && options_.interrupt;
  const bool is_apart = options_.owner && (may_be_slow || options_.timeout > 0);
  Prepared prepared;
  if (is_apart) {
    prepared = prepare_apart();
  } else {
    TakenBatch taken = take(*source_, next_batch_, options_.interrupt);
    prepared = {prepare(*source_, taken, BatchFinish(options_), options_.interrupt),
                std::move(taken.state)};
  }
  if (options_.interrupt) options_.interrupt();
  if (options_.workers == 0) return prepared;
  const auto end = std::chrono::steady_clock::now();
  const std::chrono::duration<double> passed = end - start;
  const std::chrono::duration<double> between = start - std::exchange(last_prepared_, end);
  const bool is_quick =
      passed.count() < options_.quick || (!is_first && passed < kSmallPart * between);
  slow_batches_ = is_quick ? 0 : slow_batches_ + 1;
  if (slow_batches_ >= kSlowInARow || (is_first && passed.count() > kVerySlow * options_.quick)) {
    LoaderOptions rest = options_;
    rest.first_batch = next_batch_ + 1;
    start_workers(rest);
  }
  return prepared;
}

/// Prepares the batch in another thread, so that the wait can end before it: how long this dataset
/// takes is not yet known, or limited.
Loader::Prepared Loader::prepare_apart() {
  if (!workers_) {
    LoaderOptions one = options_;
    one.workers = one.prefetch = 1;
    one.first_batch = next_batch_;
    one.end_batch = next_batch_ + 1;
    start_workers(one);
  }
  Prepared prepared = workers_->next();
  workers_->stop();
  workers_.reset();
  return prepared;
}

}  // namespace stepop
