#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace stepop {

/// How often which time was measured, in memory that does not grow with their number (some kB): it
/// knows each time to within 0.4 %.
class TimeHistogram {
 public:
  /// A time below 0 counts as 0.
  void add(std::chrono::nanoseconds time);

  /// The time that half of all do not exceed (the lower one of two in the middle); 0 of none.
  std::chrono::nanoseconds median() const;

 private:
  int64_t count_ = 0;
  std::vector<uint32_t> counts_;  ///< By bin: 128 bins of equal width between powers of two.
};

/// Where the time of a training goes: how long the named parts of it took, each within the one
/// around it, and for the first steps when each began and ended, also in other threads.
/// Its memory does not grow with the training.
class Profile {
 public:
  using Clock = std::chrono::steady_clock;

  /// The first steps, of which every event is kept, and the most events that are.
  static constexpr int64_t kTracedSteps = 500;
  static constexpr size_t kMostEvents = 100'000;

  /// All spans of one name within the same other part.
  struct Part {
    std::string name;
    int64_t count = 0;
    Clock::duration total{0};
    TimeHistogram times;
    std::vector<std::unique_ptr<Part>> parts;  ///< Within it, in the order of their first spans.
  };

  /// One span of a step that is traced.
  struct Event {
    std::string_view name;  ///< Lives as long as the profile.
    size_t thread = 0;      ///< In `threads()`.
    int64_t step = 0;       ///< Steps that were complete.
    Clock::duration begin;  ///< Since the profile began.
    Clock::duration length;
  };

  /// Begins now. `synchronize` is called before the clock is read, to wait for a device that works
  /// behind the loop's back; without it nothing is waited for.
  explicit Profile(std::function<void()> synchronize = {});
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  /// For the loop's thread, through `Span`: its spans lie within each other. The name is put
  /// together from its parts.
  void begin(std::initializer_list<std::string_view> name);
  void end() noexcept;
  void step_done();
  /// Gradients of a backward pass were summed over the processes for `total`, and for `beside` of
  /// it more of them were computed at the same time.
  void add_sums(Clock::duration total, Clock::duration beside) {
    sums_ += total;
    sums_beside_ += beside;
  }
  /// Ends the whole; nothing is measured any more.
  void stop();

  /// For any other thread, through `ThreadSpan`.
  bool is_tracing() const { return is_tracing_.load(std::memory_order_relaxed); }
  void add(std::string_view thread, std::string_view name, Clock::time_point begin,
           Clock::time_point end);

  /// What was found; to be read once it is stopped.
  const Part& whole() const { return whole_; }
  int64_t steps() const { return steps_.load(std::memory_order_relaxed); }
  /// Those of which all events were kept.
  int64_t traced_steps() const {
    return events_.size() < kMostEvents ? std::min(steps(), kTracedSteps) : events_.back().step;
  }
  /// The time of all `add_sums`, and the part of it that cost nothing.
  Clock::duration sums() const { return sums_; }
  Clock::duration sums_beside() const { return sums_beside_; }
  bool waits_for_device() const { return static_cast<bool>(synchronize_); }
  const std::vector<Event>& events() const { return events_; }
  /// Names of the threads, the loop's first.
  const std::vector<std::string>& threads() const { return threads_; }

 private:
  struct Open {
    Part* part;
    Clock::time_point begin;
  };

  Clock::time_point read_clock() const;
  void keep(std::string_view name, size_t thread, Clock::time_point begin, Clock::time_point end);

  const std::function<void()> synchronize_;
  const Clock::time_point begin_ = Clock::now();
  Part whole_;
  std::vector<Open> open_;  ///< Each within the one before.
  std::string name_;        ///< Scratch.
  Clock::duration sums_{0};
  Clock::duration sums_beside_{0};

  std::atomic<int64_t> steps_ = 0;
  std::atomic<bool> is_tracing_ = true;
  std::mutex mutex_;  ///< Of everything below.
  std::vector<Event> events_;
  std::vector<std::string> threads_ = {"training loop"};
  std::set<std::string, std::less<>> names_;  ///< Of the other threads' events.
};

/// A part of the loop's work, measured while it lives. Without a profile nothing happens, at the
/// cost of a comparison.
class Span {
 public:
  Span(Profile* profile, std::initializer_list<std::string_view> name) : profile_(profile) {
    if (profile_ != nullptr) profile_->begin(name);
  }
  Span(Profile* profile, std::string_view name) : Span(profile, {name}) {}
  ~Span() {
    if (profile_ != nullptr) profile_->end();
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  Profile* profile_;
};

/// The same in another thread, for the trace alone. The names must outlive it.
class ThreadSpan {
 public:
  ThreadSpan(Profile* profile, std::string_view thread, std::string_view name)
      : profile_(profile != nullptr && profile->is_tracing() ? profile : nullptr),
        thread_(thread),
        name_(name) {
    if (profile_ != nullptr) begin_ = Profile::Clock::now();
  }
  ~ThreadSpan() {
    if (profile_ != nullptr) profile_->add(thread_, name_, begin_, Profile::Clock::now());
  }
  ThreadSpan(const ThreadSpan&) = delete;
  ThreadSpan& operator=(const ThreadSpan&) = delete;

 private:
  Profile* profile_;
  std::string_view thread_;
  std::string_view name_;
  Profile::Clock::time_point begin_;
};

}  // namespace stepop
