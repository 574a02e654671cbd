#include "runtime/data/loader.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/measure/one_thread.h"
#include "runtime/measure/profile.h"

namespace stepop {

/// What is done to a batch before it is handed out.
struct BatchFinish {
  explicit BatchFinish(const LoaderOptions& options)
      : channels_last(options.channels_last), pin(!options.device.is_cpu()) {}
  bool channels_last;
  bool pin;
};

namespace {

/// One slow batch may be a thread that had to wait for its core; so many in a row are the
/// dataset's.
constexpr int kSlowInARow = 3;
/// A first batch that takes this many times longer than a quick one needs no second.
constexpr double kVerySlow = 100;
/// How often a wait asks whether it should end.
constexpr std::chrono::milliseconds kInterruptEvery{50};
/// How long a loader's end waits for workers that are in the middle of an example.
constexpr std::chrono::milliseconds kPatience{500};

std::atomic<int64_t> left_behind = 0;

Batch prepare(const Dataset& dataset, const BatchOrder& order, int64_t number, BatchFinish finish) {
  try {
    const std::vector<int64_t> indices = order.indices(number);
    std::vector<Random> randoms = order.randoms(number);
    Batch batch = load_batch(dataset, indices, randoms);
    if (finish.channels_last) batch = batch.channels_last();
    if (!finish.pin) return batch;
    OrderedMap<at::Tensor> pinned = batch.tensors();
    for (auto& [key, tensor] : pinned) {
      const bool can_be_pinned = tensor.device().is_cpu() && tensor.layout() == at::kStrided;
      if (can_be_pinned) tensor = tensor.pin_memory();
    }
    return {std::move(pinned), batch.texts(), batch.indices()};
  } catch (...) {
    throw Error(fmt::format("{}: {}", order.name(), text_of_current_exception()));
  }
}

}  // namespace

/// Threads that each take the next number, prepare that batch, and put it into its slot of a ring.
class Loader::Workers : public std::enable_shared_from_this<Loader::Workers> {
 public:
  Workers(const Dataset& dataset, const BatchOrder& order, const LoaderOptions& options)
      : dataset_(dataset),
        order_(order),
        end_(options.end_batch),
        finish_(options),
        interrupt_(options.interrupt),
        owner_(options.owner),
        profile_(options.profile),
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
                      order_.name(), started, error.what()));
    }
  }

  /// Ends the threads, or leaves them behind when they do not end.
  void stop() {
    std::unique_lock lock(mutex_);
    stopping_ = true;
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

  Batch next() {
    std::unique_lock lock(mutex_);
    auto& slot = slots_[static_cast<size_t>(given_) % slots_.size()];
    while (!changed_.wait_for(lock, kInterruptEvery, [&] { return slot.ready; })) {
      if (interrupt_) interrupt_();
    }
    if (slot.error) std::rethrow_exception(slot.error);
    Batch batch = std::move(slot.batch);
    slot = {};
    ++given_;
    lock.unlock();
    changed_.notify_all();
    return batch;
  }

 private:
  struct Slot {
    bool ready = false;
    Batch batch;
    std::exception_ptr error;
  };

  bool may_take() const {
    return taken_ < given_ + static_cast<int64_t>(slots_.size()) && (end_ < 0 || taken_ < end_);
  }

  void run(int64_t worker) {
    work(fmt::format("{} worker {}", order_.name(), worker));
    const std::lock_guard lock(mutex_);
    ++ended_;
    if (are_left_) --left_behind;
    changed_.notify_all();
  }

  void work(const std::string& name) {
    const at::NoGradGuard no_grad;
    ::pthread_setname_np(::pthread_self(), "loader");
    compute_with_one_thread();
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stopping_ || may_take(); });
      if (stopping_) return;
      const int64_t number = taken_++;
      lock.unlock();
      Slot done{.ready = true, .batch = {}, .error = nullptr};
      try {
        const ThreadSpan span(profile_.get(), name, "prepare a batch");
        done.batch = prepare(dataset_, order_, number, finish_);
      } catch (...) {
        done.error = std::current_exception();
      }
      lock.lock();
      slots_[static_cast<size_t>(number) % slots_.size()] = std::move(done);
      changed_.notify_all();
    }
  }

  const Dataset& dataset_;
  const BatchOrder& order_;
  const int64_t end_;
  const BatchFinish finish_;
  const InterruptCheck interrupt_;
  const std::shared_ptr<const void> owner_;
  const std::shared_ptr<Profile> profile_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  bool are_left_ = false;
  size_t ended_ = 0;
  int64_t taken_;
  int64_t given_;
  std::vector<Slot> slots_;
  std::vector<std::thread> threads_;
};

Loader::Loader(const Dataset& dataset, const BatchOrder& order, LoaderOptions options)
    : dataset_(dataset), order_(order), options_(options), next_batch_(options.first_batch) {
  if (options_.workers > 0 && options_.quick <= 0) start_workers(options_);
}

Loader::~Loader() {
  if (workers_) workers_->stop();
}

int64_t Loader::workers_left_behind() { return left_behind; }

void Loader::start_workers(const LoaderOptions& options) {
  const auto workers = std::make_shared<Workers>(dataset_, order_, options);
  workers->start(options.workers);
  workers_ = workers;
}

Batch Loader::next() {
  const at::NoGradGuard no_grad;
  const bool is_first = next_batch_ == options_.first_batch && options_.quick > 0;
  Batch batch = workers_ && !is_first ? workers_->next() : prepare_one(is_first);
  ++next_batch_;
  return options_.device.is_cpu() ? batch : batch.to(options_.device);
}

Batch Loader::prepare_one(bool is_first) {
  const auto start = std::chrono::steady_clock::now();
  const bool is_apart = is_first && options_.workers > 0 && options_.interrupt && options_.owner;
  Batch batch =
      is_apart ? prepare_apart() : prepare(dataset_, order_, next_batch_, BatchFinish(options_));
  if (options_.interrupt) options_.interrupt();
  if (options_.workers == 0) return batch;
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  slow_batches_ = passed.count() < options_.quick ? 0 : slow_batches_ + 1;
  if (slow_batches_ >= kSlowInARow || (is_first && passed.count() > kVerySlow * options_.quick)) {
    LoaderOptions rest = options_;
    rest.first_batch = next_batch_ + 1;
    start_workers(rest);
  }
  return batch;
}

/// In a thread of its own, so that the wait can be interrupted: nobody knows yet how long this
/// dataset takes.
Batch Loader::prepare_apart() {
  if (!workers_) {
    LoaderOptions one = options_;
    one.workers = one.prefetch = 1;
    one.end_batch = next_batch_ + 1;
    start_workers(one);
  }
  Batch batch = workers_->next();
  workers_->stop();
  workers_.reset();
  return batch;
}

}  // namespace stepop
