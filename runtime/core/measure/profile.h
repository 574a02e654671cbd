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
#include <utility>
#include <vector>

namespace stepop {

/// A histogram of measured times, each known to within 0.4 %. Its memory (some kB) does not grow
/// with the number of times.
class TimeHistogram {
 public:
  /// A time below 0 counts as 0.
  void add(std::chrono::nanoseconds time);

  /// The lower median of all times; 0 without any.
  std::chrono::nanoseconds median() const;

 private:
  int64_t count_ = 0;
  std::vector<uint32_t> counts_;  ///< By bin: 128 equal bins between powers of two.
};

/// The time that the named parts of a training take, each part within its parent. For the first
/// steps, also the begin and end of each span, including other threads. The memory does not grow
/// with the training.
class Profile {
 public:
  using Clock = std::chrono::steady_clock;

  /// The number of first steps whose events are all kept, and the limit on kept events.
  static constexpr int64_t kTracedSteps = 500;
  static constexpr size_t kMostEvents = 100'000;

  /// All spans of one name within the same parent.
  struct Part {
    std::string name;
    int64_t count = 0;
    Clock::duration total{0};
    TimeHistogram times;
    std::vector<std::unique_ptr<Part>> parts;  ///< The nested parts, in order of their first spans.
  };

  /// While it lives, the profile does not wait for the device: where a graph of the device is
  /// recorded, a wait is an error. The profile may be null.
  class WithoutWaits {
   public:
    explicit WithoutWaits(Profile* profile)
        : profile_(profile), waited_(profile != nullptr && std::exchange(profile->waits_, false)) {}
    ~WithoutWaits() {
      if (profile_ != nullptr) profile_->waits_ = waited_;
    }
    WithoutWaits(const WithoutWaits&) = delete;
    WithoutWaits& operator=(const WithoutWaits&) = delete;

   private:
    Profile* profile_;
    bool waited_;
  };

  /// One span of a traced step.
  struct Event {
    std::string_view name;  ///< Lives as long as the profile.
    size_t thread = 0;      ///< In `threads()`.
    int64_t step = 0;       ///< The number of complete steps.
    Clock::duration begin;  ///< The time since the profile began.
    Clock::duration length;
  };

  /// The profile begins now. `synchronize` is called before each look at the clock, to wait for a
  /// device that works asynchronously; without it, the profile waits for nothing.
  explicit Profile(std::function<void()> synchronize = {});
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  /// For the loop's thread, through `Span`: its spans are nested. The name is the concatenation of
  /// its parts.
  void begin(std::initializer_list<std::string_view> name);
  void end() noexcept;
  void step_done();
  /// Records that gradients of a backward pass were summed over the processes for `total`; for
  /// `beside` of this time, more gradients were computed at the same time.
  void add_sums(Clock::duration total, Clock::duration beside) {
    sums_ += total;
    sums_beside_ += beside;
  }
  /// Ends the profile; nothing is measured from now on.
  void stop();

  /// For all other threads, through `ThreadSpan`.
  bool is_tracing() const { return is_tracing_.load(std::memory_order_relaxed); }
  void add(std::string_view thread, std::string_view name, Clock::time_point begin,
           Clock::time_point end);

  /// The results; read them after `stop`.
  const Part& whole() const { return whole_; }
  int64_t steps() const { return steps_.load(std::memory_order_relaxed); }
  /// The number of steps whose events were all kept.
  int64_t traced_steps() const {
    return events_.size() < kMostEvents ? std::min(steps(), kTracedSteps) : events_.back().step;
  }
  /// The total time of `add_sums`, and the part that overlapped with computation.
  Clock::duration sums() const { return sums_; }
  Clock::duration sums_beside() const { return sums_beside_; }
  bool waits_for_device() const { return static_cast<bool>(synchronize_); }
  const std::vector<Event>& events() const { return events_; }
  /// The threads' names, the loop's first.
  const std::vector<std::string>& threads() const { return threads_; }

 private:
  struct Open {
    Part* part;
    Clock::time_point begin;
  };

  Clock::time_point read_clock() const;
  void keep(std::string_view name, size_t thread, Clock::time_point begin, Clock::time_point end);

  const std::function<void()> synchronize_;
  bool waits_ = true;  ///< Only used by the loop's thread.
  const Clock::time_point begin_ = Clock::now();
  Part whole_;
  std::vector<Open> open_;  ///< Each part is within the last.
  std::string name_;        ///< Scratch.
  Clock::duration sums_{0};
  Clock::duration sums_beside_{0};

  std::atomic<int64_t> steps_ = 0;
  std::atomic<bool> is_tracing_ = true;
  std::mutex mutex_;  ///< Protects all following members.
  std::vector<Event> events_;
  std::vector<std::string> threads_ = {"training loop"};
  std::set<std::string, std::less<>> names_;  ///< The names of the other threads' events.
};

/// A part of the loop's work, measured during its lifetime. Without a profile, a Span only costs a
/// comparison.
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

/// The same in another thread, only for the trace. The names must outlive the span.
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
