#include "runtime/train/distributed/link.h"

#include <ATen/core/jit_type.h>
#include <c10/util/Flags.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"
#include "runtime/train/distributed/meeting.h"

C10_DECLARE_int(caffe2_log_level);  // c10's own log on the standard error

namespace stepop {
namespace {

std::atomic<Link*> current = nullptr;
std::terminate_handler usual_terminate = nullptr;

/// Gloo notices in its own thread that processes do different things, and throws where no caller
/// can catch the exception.
[[noreturn]] void on_terminate() {
  Link* const link = current.exchange(nullptr);
  const std::string text = std::current_exception() ? text_of_current_exception() : "";
  if (link != nullptr && text.find("collective mismatch") != std::string::npos) {
    link->report_mismatch();
    ::_exit(1);
  }
  if (usual_terminate != nullptr) usual_terminate();
  std::abort();
}

}  // namespace

Link::Link(const Place& place, const InterruptCheck& interrupt) : place_(place) {
  // Broken and late connections are reported here, in one sentence.
  constexpr int kFatal = 3;
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = kFatal;
  Meeting meeting = meet(place, interrupt);
  store_ = std::move(meeting.store);
  watch_store_ = std::move(meeting.watch_store);
  group_ = std::move(meeting.group);
  names_ = std::move(meeting.names);
  others_.resize(static_cast<size_t>(place_.size));
  for (Beat& other : others_) other.since = Clock::now();
  set_time_limit(limit_);
  watch_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
  if (current.exchange(this) == nullptr) usual_terminate = std::set_terminate(on_terminate);
}

Link::~Link() {
  Link* self = this;
  if (current.compare_exchange_strong(self, nullptr)) std::set_terminate(usual_terminate);
}

std::string Link::mismatch_text() const {
  return fmt::format(
      "the processes do different things in step {}: one sums, or logs, what another does not. An "
      "iterator runs the same updates and ops in all of them, see "
      "runtime/train/distributed/README.md",
      step_.load() + 1);
}

void Link::report_mismatch() noexcept {
  report({.rank = place_.rank, .text = mismatch_text()});
  std::this_thread::sleep_for(kHeardWithin);
}

Link::Pending::iterator Link::begin_wait() {
  started_.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  return pending_.insert(pending_.end(), Clock::now());
}

void Link::end_wait(Pending::iterator waiting) {
  const std::lock_guard lock(mutex_);
  pending_.erase(waiting);
}

void Link::wait(const c10::intrusive_ptr<c10d::Work>& work) {
  const auto waiting = begin_wait();
  try {
    const auto future = work->getFuture();
    for (;;) {
      // Looks for failures in between: the operation itself has no time limit.
      if (work->isCompleted()) break;
      bool is_done = true;
      try {
        work->wait(kLookEvery);
      } catch (const std::exception&) {
        is_done = work->isCompleted();
      }
      if (is_done) break;
      if (failure()) throw peer_error("");
    }
    if (const auto error = work->exception()) std::rethrow_exception(error);
    end_wait(waiting);
  } catch (const PeerError&) {
    end_wait(waiting);
    throw;
  } catch (const std::exception& error) {
    end_wait(waiting);
    throw peer_error(error_text(error));
  }
}

c10::intrusive_ptr<c10::ivalue::Future> Link::guarded(const c10::intrusive_ptr<c10d::Work>& work) {
  started_.fetch_add(1, std::memory_order_relaxed);
  const auto guarded =
      c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
  Pending::iterator mine;
  std::list<c10::intrusive_ptr<c10::ivalue::Future>>::iterator place;
  {
    const std::lock_guard lock(mutex_);
    mine = pending_.insert(pending_.end(), Clock::now());
    place = futures_.insert(futures_.end(), guarded);
  }
  // If the work is already complete, the callback runs at once.
  work->getFuture()->addCallback([this, guarded, mine, place](c10::ivalue::Future& done) {
    {
      const std::lock_guard inner(mutex_);
      pending_.erase(mine);
      futures_.erase(place);
    }
    if (guarded->completed()) return;  // a failure was known before
    if (done.hasError()) {
      guarded->setErrorIfNeeded(
          std::make_exception_ptr(peer_error(done.tryRetrieveErrorMessage())));
    } else {
      guarded->markCompleted(done.value());
    }
  });
  return guarded;
}

void Link::set(const std::string& key, const std::string& value) {
  store_->set(key, bytes_of(value));
}

std::string Link::wait_for(const std::string& key) {
  auto rest = std::chrono::microseconds(100);
  try {
    while (!store_->check({key})) {
      if (failure()) throw peer_error("");
      std::this_thread::sleep_for(rest);
      rest = std::min(rest * 2, std::chrono::microseconds(20'000));
    }
    return text_of(store_->get(key));
  } catch (const PeerError&) {
    throw;
  } catch (const std::exception& error) {
    throw peer_error(error_text(error));
  }
}

std::optional<Failure> Link::failure() {
  const std::lock_guard lock(mutex_);
  return failure_;
}

PeerError Link::peer_error(const std::string& what) {
  is_ending_ = true;
  // A process that fails reports the reason before it closes its connections; the watch reads the
  // reason.
  const std::vector<std::string> before = failure() ? std::vector<std::string>() : beats_of_all();
  const auto until = Clock::now() + kReasonWithin;
  while (!failure() && Clock::now() < until) std::this_thread::sleep_for(kLookEvery / 10);
  if (!failure()) {
    const std::vector<std::string> silent = silent_since(before);
    const Failure gone{.text = gone_text(silent, what)};
    report(gone);  // all processes report the same
    fail(gone);
  }
  return error_of(*failure());
}

/// `what`: the error that broke a connection, for when no name is known.
std::string Link::gone_text(const std::vector<std::string>& names, const std::string& what) {
  return fmt::format("{} is gone: it was killed, or the network failed; its launcher says more{}",
                     names.empty() ? "another process" : list_text(names),
                     names.empty() ? fmt::format("\n  {}", what.substr(0, what.find('\n'))) : "");
}

/// The error as all processes except the failed process report it.
PeerError Link::error_of(const Failure& failure) const {
  const bool is_own =
      failure.rank < 0 || failure.rank >= place_.size || failure.rank == place_.rank;
  return PeerError(
      is_own ? failure.text
             : fmt::format("{}: {}", names_[static_cast<size_t>(failure.rank)], failure.text),
      failure.exit_code);
}

/// The heartbeats by rank; empty when the store is gone.
std::vector<std::string> Link::beats_of_all() {
  std::vector<std::string> beats;
  try {
    for (int rank = 0; rank < place_.size; ++rank) {
      const std::string key = fmt::format("beat/{}", rank);
      beats.push_back(store_->check({key}) ? text_of(store_->get(key)) : "");
    }
  } catch (const std::exception&) {
    beats.clear();
  }
  return beats;
}

/// The names of processes without a heartbeat since `before`, which was read some seconds ago.
std::vector<std::string> Link::silent_since(const std::vector<std::string>& before) {
  const std::vector<std::string> now = beats_of_all();
  std::vector<std::string> names;
  for (size_t rank = 0; rank < now.size() && rank < before.size(); ++rank) {
    const bool is_own = static_cast<int>(rank) == place_.rank;
    if (!is_own && now[rank] == before[rank]) names.push_back(names_[rank]);
  }
  return names;
}

void Link::report(const Failure& failure) noexcept {
  is_ending_ = true;
  try {
    // The first failure counts.
    if (!this->failure()) {
      watch_store_->compareSet(kFailureKey, {}, bytes_of(to_text(failure)));
    }
  } catch (const std::exception&) {  // no process is left to read it
  }
}

void Link::leave() noexcept {
  try {
    store_->set(fmt::format("heard/{}", place_.rank), bytes_of("1"));
    if (place_.rank != 0 || place_.has_store) return;
    const auto until = Clock::now() + kHeardWithin;
    for (int rank = 1; rank < place_.size; ++rank) {
      while (!store_->check({fmt::format("heard/{}", rank)}) && Clock::now() < until) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    }
  } catch (const std::exception&) {  // no process is left to read it
  }
}

/// Makes a failure known in this process: from now on no operation waits.
void Link::fail(const Failure& failure) {
  std::list<c10::intrusive_ptr<c10::ivalue::Future>> waiting;
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = failure;
    failed_at_ = Clock::now();
    waiting = futures_;
  }
  for (const auto& future : waiting) {
    future->setErrorIfNeeded(std::make_exception_ptr(error_of(failure)));
  }
}

void Link::finish() {
  constexpr std::chrono::seconds kAllWithin{60};
  const bool is_root = place_.rank == 0;
  try {
    if (hosts_ && !is_root) final_gather();
    store_->add("finished", 1);
    if (is_root) {
      const auto until = Clock::now() + kAllWithin;
      while (store_->add("finished", 0) < place_.size && Clock::now() < until && !failure()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
      set("over", "1");
    } else {
      wait_for("over");
    }
  } catch (const std::exception&) {  // the work is done
  }
  watch_.request_stop();
  watch_.join();
  if (final_gather_ && !final_gather_->isCompleted())
    hosts_.release();  // a process did not come: it would wait
  hosts_.reset();
  group_.reset();
  if (is_root && !place_.has_store) {
    // The other processes still read from the store, which this process keeps.
    try {
      const auto until = Clock::now() + std::chrono::seconds(2);
      while (store_->add("left", 0) < place_.size - 1 && Clock::now() < until) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    } catch (const std::exception&) {
    }
  } else if (!is_root) {
    try {
      store_->add("left", 1);
    } catch (const std::exception&) {
    }
  }
}

}  // namespace stepop
