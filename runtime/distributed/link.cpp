#include "runtime/distributed/link.h"

#include <ATen/core/jit_type.h>
#include <c10/util/Flags.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/distributed/meeting.h"

C10_DECLARE_int(caffe2_log_level);  // of c10's own log, on the standard error

namespace stepop {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr std::chrono::milliseconds kLookEvery{250};
/// A process that cannot say why it ends, such as one that was killed, leaves connections that
/// break. So long others wait for its reason before they say so.
constexpr std::chrono::seconds kReasonWithin{3};
/// A process without a heartbeat for so long is gone, or its machine is.
constexpr double kSilence = 60;
/// After a failure the main thread may be where nothing reaches it; or rank 0 may do something
/// useful, such as callbacks.
constexpr std::chrono::seconds kStuckAfter{15};
constexpr std::chrono::seconds kBusyAtMost{60};
constexpr const char* kFailure = "failure";

std::string text_of(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }
std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string to_text(const Failure& failure) {
  return nlohmann::json{
      {"rank", failure.rank}, {"exit_code", failure.exit_code}, {"text", failure.text}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Failure failure_of(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return {.text = text};
  return {.rank = json.value("rank", -1),
          .exit_code = json.value("exit_code", 1),
          .text = json.value("text", "")};
}

/// What a heartbeat says.
struct Life {
  int64_t started = -1;  ///< Operations that the process began.
  int64_t step = 0;
  bool waits = false;
};

Life life_of(const std::string& beat) {
  Life life;
  long long number = 0;
  long long started = -1;
  long long step = 0;
  int waits = 0;
  if (std::sscanf(beat.c_str(), "%lld %lld %lld %d", &number, &started, &step, &waits) == 4) {
    life = {started, step, waits != 0};
  }
  return life;
}

std::atomic<Link*> current = nullptr;
std::terminate_handler usual_terminate = nullptr;

/// Gloo finds out in a thread of its own that processes do different things, and throws where
/// nobody can catch it.
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
  // Connections that break, or come late, are reported here, in a sentence.
  constexpr int kFatal = 3;
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = kFatal;
  Meeting meeting = meet(place, interrupt);
  store_ = std::move(meeting.store);
  watch_store_ = std::move(meeting.watch_store);
  group_ = std::move(meeting.group);
  names_ = std::move(meeting.names);
  others_.resize(static_cast<size_t>(place_.size));
  for (Beat& other : others_) other.since = Clock::now();
  watch_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
  if (current.exchange(this) == nullptr) usual_terminate = std::set_terminate(on_terminate);
}

Link::~Link() {
  Link* self = this;
  if (current.compare_exchange_strong(self, nullptr)) std::set_terminate(usual_terminate);
}

void Link::report_mismatch() noexcept {
  report({.rank = place_.rank,
          .text = fmt::format("the processes do different things in step {}: one sums, or logs, "
                              "what another does not. An iterator runs the same updates and ops in "
                              "all of them, see runtime/distributed/README.md",
                              step_.load() + 1)});
  std::this_thread::sleep_for(kHeardWithin);
}

void Link::wait(const c10::intrusive_ptr<c10d::Work>& work) {
  started_.fetch_add(1, std::memory_order_relaxed);
  const auto mine = [&] {
    const std::lock_guard lock(mutex_);
    return pending_.insert(pending_.end(), Clock::now());
  }();
  const auto over = [&] {
    const std::lock_guard lock(mutex_);
    pending_.erase(mine);
  };
  try {
    const auto future = work->getFuture();
    for (;;) {
      // A look at the clock in between: the operation itself has no time limit.
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
    over();
  } catch (const PeerError&) {
    over();
    throw;
  } catch (const std::exception& error) {
    over();
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
  // What is over by now calls this at once.
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
  // The one that failed says why before it closes its connections; the watch reads it.
  const std::vector<std::string> before = failure() ? std::vector<std::string>() : beats_of_all();
  const auto until = Clock::now() + kReasonWithin;
  while (!failure() && Clock::now() < until) std::this_thread::sleep_for(kLookEvery / 10);
  if (!failure()) {
    const std::vector<std::string> silent = silent_since(before);
    const Failure gone{
        .text = fmt::format(
            "{} is gone: it was killed, or the network failed; its launcher says more{}",
            silent.empty() ? "another process" : list_text(silent),
            silent.empty() ? fmt::format("\n  {}", first_line(what)) : "")};
    report(gone);  // all say the same
    fail(gone);
  }
  const Failure known = *failure();
  const bool is_own = known.rank < 0 || known.rank == place_.rank;
  return PeerError(is_own
                       ? known.text
                       : fmt::format("{}: {}", names_[static_cast<size_t>(known.rank)], known.text),
                   known.exit_code);
}

/// By rank; empty when the store is gone.
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

/// Those whose hearts did not beat since they were `before`, some seconds ago.
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
    // The first one counts.
    if (!this->failure()) {
      watch_store_->compareSet(kFailure, {}, bytes_of(to_text(failure)));
    }
  } catch (const std::exception&) {  // nobody is left to be told
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
  } catch (const std::exception&) {  // nobody is left to be told
  }
}

/// Known in this process from now on: nobody waits any longer.
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
    future->setErrorIfNeeded(std::make_exception_ptr(PeerError(failure.text, failure.exit_code)));
  }
}

void Link::watch(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    try {
      if (!failure()) {
        beat();
        if (watch_store_->check({kFailure})) {
          fail(failure_of(text_of(watch_store_->get(kFailure))));
          watch_store_->set(fmt::format("heard/{}", place_.rank), bytes_of("1"));
        }
        look_at_beats();
        look_at_own_wait();
      }
    } catch (const std::exception&) {
      if (stop.stop_requested()) return;
      fail({.text = fmt::format("{} is gone: the connection to it broke. It was killed, or the "
                                "network failed; its own log or its launcher says more",
                                place_.has_store ? "the launcher's store" : names_[0])});
    }
    end_when_stuck();
    std::this_thread::sleep_for(kLookEvery);
  }
}

void Link::beat() {
  bool waits = false;
  {
    const std::lock_guard lock(mutex_);
    waits = !pending_.empty();
  }
  watch_store_->set(
      fmt::format("beat/{}", place_.rank),
      bytes_of(fmt::format("{} {} {} {}", ++beats_, started_.load(), step_.load(), waits ? 1 : 0)));
}

/// Rank 0 looks at all, the others at rank 0.
void Link::look_at_beats() {
  if (beats_ % 2 != 0) return;
  for (int rank = 0; rank < (place_.rank == 0 ? place_.size : 1); ++rank) {
    if (rank == place_.rank) continue;
    Beat& other = others_[static_cast<size_t>(rank)];
    const std::string key = fmt::format("beat/{}", rank);
    const std::string text = watch_store_->check({key}) ? text_of(watch_store_->get(key)) : "";
    double silent = 0;
    {
      const std::lock_guard lock(mutex_);
      if (text != other.text) other = {text, Clock::now()};
      silent = Seconds(Clock::now() - other.since).count();
    }
    if (silent < std::min(kSilence, limit_.load())) continue;
    const Failure gone{
        .text = fmt::format("{} was not heard of for {:.0f} seconds: it is gone, or its machine or "
                            "the network is",
                            names_[static_cast<size_t>(rank)], silent)};
    watch_store_->compareSet(kFailure, {}, bytes_of(to_text(gone)));
  }
}

/// Those that began the fewest operations are waited for.
std::string Link::who_is_late() {
  std::vector<std::string> late;
  int64_t fewest = started_;
  for (int rank = 0; rank < place_.size; ++rank) {
    if (rank == place_.rank) continue;
    const std::string key = fmt::format("beat/{}", rank);
    if (!watch_store_->check({key})) continue;
    const Life life = life_of(text_of(watch_store_->get(key)));
    if (life.started > fewest || (life.started == fewest && life.waits)) continue;
    if (life.started < fewest) late.clear();
    fewest = life.started;
    late.push_back(fmt::format("{}, in step {}", names_[static_cast<size_t>(rank)], life.step + 1));
  }
  return late.empty() ? "nobody that could be named" : list_text(late);
}

void Link::look_at_own_wait() {
  Clock::time_point since;
  {
    const std::lock_guard lock(mutex_);
    if (pending_.empty()) return;
    since = pending_.front();
  }
  const double waited = Seconds(Clock::now() - since).count();
  if (waited < limit_) return;
  const Failure late{
      .text = fmt::format(
          "{} waited {:.0f} seconds for: {}. It hangs, or does something in this step that the "
          "others do not; a step that takes longer needs a larger distributed/timeout",
          names_[static_cast<size_t>(place_.rank)], waited, who_is_late())};
  watch_store_->compareSet(kFailure, {}, bytes_of(to_text(late)));
}

/// The main thread may wait in an operation that nothing can end.
void Link::end_when_stuck() {
  std::optional<Failure> known;
  {
    const std::lock_guard lock(mutex_);
    const bool is_busy = place_.rank == 0 && pending_.empty();
    if (!failure_ || is_ending_ ||
        Clock::now() - failed_at_ < (is_busy ? kBusyAtMost : kStuckAfter)) {
      return;
    }
    known = failure_;
  }
  // Where rank 0 is alive, it has said so.
  if (place_.rank == 0) std::fputs(("stepop: " + known->text + "\n").c_str(), stderr);
  std::fflush(nullptr);
  ::_exit(known->exit_code);
}

void Link::finish() {
  constexpr std::chrono::seconds kAllWithin{60};
  const bool is_root = place_.rank == 0;
  try {
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
  group_.reset();
  if (is_root && !place_.has_store) {
    // The others still read from the store that this process keeps.
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
