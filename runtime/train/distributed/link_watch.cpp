// The thread that sends this process's heartbeat and watches the heartbeats of the others.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "runtime/core/base/shown_text.h"
#include "runtime/core/base/text.h"
#include "runtime/train/distributed/link.h"
#include "runtime/train/distributed/silent_connections.h"

namespace stepop {
namespace {

using Seconds = std::chrono::duration<double>;

/// The number of seconds without a heartbeat after which a process, or its machine, counts as gone.
constexpr double kSilence = 60;
/// After a failure the main thread may hang where nothing reaches it; rank 0 may also be busy with
/// useful work, such as callbacks.
constexpr std::chrono::seconds kStuckAfter{15};
constexpr std::chrono::seconds kBusyAtMost{60};
/// An operation between devices does not end when a process is missing. Time for the thread that
/// may not wait for it.
constexpr std::chrono::seconds kStuckOnDeviceAfter{5};

/// The content of a heartbeat.
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

}  // namespace

void Link::set_time_limit(double seconds) {
  limit_ = seconds;
  // Calls of the store have no time limit themselves.
  end_when_silent(place_.port,
                  std::chrono::duration_cast<std::chrono::milliseconds>(Seconds(silence_limit())));
}

double Link::silence_limit() const { return std::min(kSilence, limit_.load()); }

void Link::watch(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const auto begin = Clock::now();
    try {
      if (!failure()) {
        beat();
        if (watch_store_->check({kFailureKey})) {
          fail(failure_of(text_of(watch_store_->get(kFailureKey))));
          watch_store_->set(fmt::format("heard/{}", place_.rank), bytes_of("1"));
        }
        look_at_beats();
        look_at_own_wait();
        check_final_gather();
      }
    } catch (const std::exception&) {
      if (stop.stop_requested()) return;
      const std::string store = place_.has_store ? "the launcher's store" : names_[0];
      const double waited = Seconds(Clock::now() - begin).count();
      is_cut_off_ = true;
      fail({.text = waited > silence_limit() / 2
                        ? fmt::format("{} did not answer for {:.0f} seconds: it is stopped, or "
                                      "hangs, or its machine or the network does",
                                      store, waited)
                        : fmt::format("{} is gone: the connection to it broke. It was killed, or "
                                      "the network failed; its own log or its launcher says more",
                                      store)});
      break_connections(place_.port);  // another thread may also be waiting for an answer
    }
    end_when_stuck();
    std::this_thread::sleep_for(kLookEvery);
  }
}

void Link::beat() {
  bool waits = false;
  {
    const std::lock_guard lock(mutex_);
    waits = !pending_.empty() || !on_device_.empty();
  }
  watch_store_->set(
      fmt::format("beat/{}", place_.rank),
      bytes_of(fmt::format("{} {} {} {}", ++beats_, started_.load(), step_.load(), waits ? 1 : 0)));
}

/// Rank 0 watches all processes, the others watch rank 0.
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
    if (silent < silence_limit()) continue;
    const Failure gone{
        .text = fmt::format(
            "{} has not been heard from for {:.0f} seconds: it is gone, or its machine or "
            "the network is",
            names_[static_cast<size_t>(rank)], silent)};
    watch_store_->compareSet(kFailureKey, {}, bytes_of(to_text(gone)));
  }
}

/// The processes that began the fewest operations are late. Empty when all processes wait.
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
  return late.empty() ? "" : list_text(late);
}

void Link::look_at_own_wait() {
  Clock::time_point since = stuck_since().value_or(Clock::now());
  {
    const std::lock_guard lock(mutex_);
    if (!pending_.empty()) since = std::min(since, pending_.front());
  }
  const double waited = Seconds(Clock::now() - since).count();
  if (waited < limit_) return;
  const std::string others = who_is_late();
  const Failure late{
      .text = others.empty()
                  ? mismatch_text()
                  : fmt::format("{} waited {:.0f} seconds for: {}. It hangs, or does something in "
                                "this step that the others do not; a step that takes longer needs "
                                "a larger distributed/timeout",
                                names_[static_cast<size_t>(place_.rank)], waited, others)};
  watch_store_->compareSet(kFailureKey, {}, bytes_of(to_text(late)));
}

/// Ends the process when the main thread waits in an operation that nothing can end.
void Link::end_when_stuck() {
  std::optional<Failure> known;
  const bool is_on_device = stuck_since().has_value();
  {
    const std::lock_guard lock(mutex_);
    const bool is_busy = place_.rank == 0 && pending_.empty();
    const auto most = is_on_device && !is_ending_ ? kStuckOnDeviceAfter
                      : is_busy && !is_on_device  ? kBusyAtMost
                                                  : kStuckAfter;
    // What waits for a device may do so at its end, too.
    if (!failure_ || (is_ending_ && !is_on_device) || Clock::now() - failed_at_ < most) return;
    known = failure_;
  }
  // If rank 0 is alive, it has already printed the failure.
  if (place_.rank == 0) std::fputs(("stepop: " + shown_text(known->text) + "\n").c_str(), stderr);
  std::fflush(nullptr);
  ::_exit(known->exit_code);
}

}  // namespace stepop
