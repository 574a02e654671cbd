#include "runtime/tools/tune/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <utility>

namespace stepop {
namespace {

/// The fewest rounds for which the sign test allows kRowError.
constexpr size_t kFewestRounds = 6;
constexpr size_t kMostRounds = 20;
constexpr size_t kConfirmRounds = 30;
constexpr double kRowError = 0.05;
constexpr double kConfirmError = 0.002;
/// A smaller gain is not worth a setting.
constexpr double kLeastGain = 1.02;
/// The part of the time that is kept for the confirmation.
constexpr double kConfirmShare = 0.35;

/// A candidate with all that was measured of it.
struct Runner {
  TunedRow row;
  std::unique_ptr<Subject> subject = {};  ///< While it takes part in a race.
  std::vector<double> times = {};         ///< Seconds of a step.
  std::vector<double> ratios = {};        ///< Against the present settings.

  double measure() {
    times.push_back(subject->measure());
    row.memory = std::max(row.memory, subject->memory());
    return times.back();
  }
  Ratio speed() const { return ratio_of(ratios, kRowError); }
  bool was_tried() const { return !ratios.empty() || !row.failure.empty(); }
  TunedRow finished() const {
    TunedRow result = row;
    result.speed = speed();
    result.step_seconds = ratio_of(times, kRowError).median;
    return result;
  }
};

bool is_worth_it(const Ratio& ratio) { return ratio.is_faster() && ratio.median > kLeastGain; }

/// How many times faster `a` was than `b` in the same rounds.
Ratio lead_of(const Runner& a, const Runner& b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(a.ratios.size(), b.ratios.size()); ++i) {
    ratios.push_back(a.ratios[i] / b.ratios[i]);
  }
  return ratio_of(std::move(ratios), kRowError);
}

class Search {
 public:
  Search(const std::vector<Candidate>& singles, std::unique_ptr<Subject> present,
         double start_seconds, Workbench& workbench)
      : workbench_(workbench),
        start_seconds_(start_seconds),
        confirm_seconds_(kConfirmShare * workbench.seconds_left()) {
    present_.subject = std::move(present);
    for (const auto& candidate : singles) singles_.push_back({.row = {.candidate = candidate}});
  }

  TuneResult run() {
    const double left = workbench_.seconds_left();
    present_.measure();
    portion_seconds_ = left - workbench_.seconds_left();
    workbench_.keep(confirm_seconds_);
    until_time_is_over([&] { measure_singles(); });
    workbench_.keep(0);
    present_.subject.reset();
    choose_finalists();
    if (!finalists_.empty()) {
      until_time_is_over([&] {
        workbench_.progress("starting again");
        present_.subject = workbench_.start({});
        race(finalists_, kConfirmRounds, 0, "measuring the best again");
      });
    }
    return result();
  }

 private:
  void until_time_is_over(const std::function<void()>& measure) {
    try {
      measure();
    } catch (const TimeOver&) {
      for (auto* runners : {&singles_, &finalists_}) {
        for (Runner& runner : *runners) runner.subject.reset();
      }
    }
  }

  /// In groups that fit into memory. Each candidate gets the same part of the time.
  void measure_singles() {
    for (size_t done = 0; done < singles_.size();) {
      const double left = workbench_.seconds_left() - confirm_seconds_;
      const auto fits = [&](size_t count) {
        const double round = static_cast<double>(count + 1) * portion_seconds_;
        return static_cast<double>(count) * start_seconds_ + kFewestRounds * round <= left;
      };
      const size_t others = singles_.size() - done;
      size_t count = std::min(workbench_.room(), others);
      while (count > 0 && !fits(count)) --count;
      if (count == 0) return;
      const double share = static_cast<double>(count) / static_cast<double>(others);
      race(std::span(singles_).subspan(done, count), kMostRounds,
           workbench_.seconds_left() - share * left, "each setting by itself");
      done += count;
    }
  }

  void start(Runner& runner) {
    workbench_.progress("starting: " + runner.row.candidate.name());
    const double left = workbench_.seconds_left();
    try {
      runner.subject = workbench_.start(runner.row.candidate);
    } catch (const CandidateFailed& failed) {
      runner.row.failure = failed.what();
    }
    start_seconds_ = std::max(start_seconds_, left - workbench_.seconds_left());
  }

  /// In each round each runner has a portion, between two of the present settings: what else the
  /// machine does falls on all. Rounds end when `seconds` are left, but not before the fewest.
  void race(std::span<Runner> runners, size_t most_rounds, double seconds,
            const std::string& what) {
    std::vector<Runner*> order;
    for (Runner& runner : runners) {
      start(runner);
      order.push_back(&runner);
    }
    double before = present_.measure();
    for (size_t round = 1; round <= most_rounds; ++round) {
      const double left = workbench_.seconds_left();
      const auto racing = [](const Runner& runner) { return runner.subject != nullptr; };
      const auto count = static_cast<double>(1 + std::ranges::count_if(runners, racing));
      if (count < 2 || (round > kFewestRounds && left - count * portion_seconds_ < seconds)) break;
      workbench_.progress(what);
      for (Runner* runner : order) {
        if (!racing(*runner)) continue;
        try {
          runner->measure();
        } catch (const CandidateFailed& failed) {
          runner->row.failure = failed.what();
          runner->subject.reset();
        }
      }
      std::ranges::reverse(order);  // so that no runner always comes first
      const double after = present_.measure();
      present_.ratios.push_back(before / after);
      portion_seconds_ = (left - workbench_.seconds_left()) / count;
      for (Runner& runner : runners) {
        if (!racing(runner)) continue;
        runner.ratios.push_back(std::sqrt(before * after) / runner.times.back());
        if (runner.speed().is_slower()) runner.subject.reset();
      }
      before = after;
    }
    for (Runner& runner : runners) runner.subject.reset();
  }

  /// The fastest single, then all together that are faster than the present settings.
  void choose_finalists() {
    std::vector<std::pair<double, Candidate>> faster;
    for (const Runner& runner : singles_) {
      const Ratio speed = runner.speed();
      if (!runner.row.failure.empty() || !is_worth_it(speed)) continue;
      faster.emplace_back(speed.median, runner.row.candidate);
    }
    if (faster.empty()) return;
    std::ranges::stable_sort(faster, std::greater<>(), [](const auto& each) { return each.first; });
    Candidate together;
    for (const auto& [median, candidate] : faster) {
      if (!together.overlaps(candidate)) together = together.with(candidate);
    }
    const Candidate& fastest = faster.front().second;
    finalists_.push_back({.row = {.candidate = fastest}});
    if (together.settings.size() > fastest.settings.size()) {
      finalists_.push_back({.row = {.candidate = std::move(together)}});
    }
  }

  TuneResult result() {
    TuneResult result{.present = present_.finished()};
    const Runner* winner = nullptr;
    for (const Runner& runner : finalists_) {
      const Ratio speed = ratio_of(runner.ratios, kConfirmError);
      if (!runner.row.failure.empty() || !is_worth_it(speed)) continue;
      if (winner != nullptr && !is_worth_it(lead_of(runner, *winner))) continue;
      winner = &runner;
      result.winner = runner.row.candidate;
      result.confirmed = speed;
    }
    if (winner == nullptr) {
      for (const Runner& runner : finalists_) {
        const bool were_enough = ratio_of(runner.ratios, kConfirmError).low > 0;
        const bool is_refuted =
            were_enough || runner.speed().is_slower() || !runner.row.failure.empty();
        (is_refuted ? result.not_confirmed : result.not_measured_again)
            .push_back(runner.row.candidate.name());
      }
    }
    for (const Runner& runner : singles_) {
      if (!runner.was_tried()) result.not_tried.push_back(runner.row.candidate.name());
      if (runner.was_tried()) result.rows.push_back(runner.finished());
    }
    if (finalists_.size() > 1 && finalists_.back().was_tried()) {
      result.rows.push_back(finalists_.back().finished());
    }
    std::ranges::stable_sort(result.rows, [](const TunedRow& a, const TunedRow& b) {
      if (a.failure.empty() != b.failure.empty()) return a.failure.empty();
      return a.speed.median > b.speed.median;
    });
    return result;
  }

  Workbench& workbench_;
  double start_seconds_;  ///< Of the slowest start.
  double portion_seconds_ = 0;
  double confirm_seconds_;
  Runner present_;
  std::vector<Runner> singles_;
  std::vector<Runner> finalists_;
};

}  // namespace

TuneResult search_settings(const std::vector<Candidate>& singles, std::unique_ptr<Subject> present,
                           double start_seconds, Workbench& workbench) {
  return Search(singles, std::move(present), start_seconds, workbench).run();
}

}  // namespace stepop
