#include "runtime/tools/tune/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <set>
#include <utility>

#include "runtime/tools/tune/race.h"

namespace stepop {
namespace {

/// Of the time: the rest is for what takes longer than it did before, and for the end.
constexpr double kUsable = 0.95;
// Which part of the time is over when each stage ends; the rest confirms.
constexpr double kUntilSingles = 0.42;
constexpr double kUntilTogether = 0.60;
constexpr double kUntilBeside = 0.74;

// Six allow to say with an error of 0.05 that one is slower.
constexpr Race::Rounds kRounds{6, 16};
/// With fewer a race is not begun.
constexpr size_t kLeastRounds = 4;
constexpr size_t kMostBeside = 5;
constexpr size_t kMostOtherChains = 2;

/// A smaller gain is not worth a setting.
constexpr double kLeastGain = 1.02;
/// One so large needs no second look before it is tried together with others.
constexpr double kLargeGain = 1.1;
/// What is slower than this by itself is not tried together with others.
constexpr double kHopeless = 0.9;
/// Those that differ by less, or by nothing that can be seen, are equals: the simplest is taken.
constexpr double kTie = 0.98;
constexpr double kTieInNoise = 0.9;
constexpr double kUsualError = 0.05;
constexpr double kTieError = 0.01;
/// To be worth a try together with others.
constexpr double kHelpsError = 0.2;

/// Looks are taken after each round, so the error of one look is small; see ratio_of.
constexpr double kConfirmError = 0.002;
constexpr size_t kFewestToConfirm = 10;
constexpr size_t kMostToConfirm = 60;
constexpr size_t kMostFinalists = 2;
/// Portions after which two that still differ by noise alone are equals.
constexpr size_t kEnoughForTie = 20;
constexpr double kLeastLead = 1.03;

class Search {
 public:
  Search(const std::vector<Alternatives>& axes, Workbench& workbench, double time_limit,
         uint64_t seed)
      : axes_(axes), workbench_(workbench), time_limit_(kUsable * time_limit), random_(seed) {}

  TuneResult run() {
    start_present("starting");
    {
      const Timed timed(workbench_, pace_.portion);
      present_.times.push_back(subject_->measure());
    }
    measure_singles();
    std::vector<Runner*> best = best_singles();
    best = measure_together(best);
    best = measure_beside(best);
    subject_.reset();
    confirm(best);
    return result();
  }

 private:
  double until(double share) const { return time_limit_ * share; }

  void start_present(const std::string& what) {
    workbench_.progress(what);
    const Timed timed(workbench_, pace_.start);
    subject_ = workbench_.start({});
  }

  /// How many of `count` candidates can be started and race for `rounds` rounds until `end`.
  size_t fitting(size_t count, size_t rounds, double end) const {
    const double left = end - workbench_.seconds();
    const auto needed = [&](size_t of) {
      return static_cast<double>(of) * pace_.start +
             static_cast<double>(rounds) * pace_.portion * Race::portions_of(of);
    };
    while (count > 0 && needed(count) > left) --count;
    return count;
  }

  /// When all other stages must be over, so that there is time to confirm what they found.
  double end_of_search() const {
    return time_limit_ - static_cast<double>(kMostFinalists + 1) * pace_.start -
           static_cast<double>(kFewestToConfirm) * pace_.portion *
               Race::portions_of(kMostFinalists);
  }

  Runner& runner_of(const Candidate& candidate) {
    for (Runner& runner : runners_) {
      if (runner.row.candidate.settings == candidate.settings) return runner;
    }
    return runners_.emplace_back(Runner{.row = {.candidate = candidate}});
  }

  /// Each value of each axis, in groups that the memory has room for.
  void measure_singles() {
    std::vector<Runner*> all;
    for (const Alternatives& axis : axes_) {
      for (const Candidate& candidate : axis) all.push_back(&runner_of(candidate));
    }
    const size_t room = std::max<size_t>(1, workbench_.room());
    const size_t groups = (all.size() + room - 1) / room;
    const size_t size = groups == 0 ? 0 : (all.size() + groups - 1) / groups;
    for (size_t group = 0; group < groups; ++group) {
      Race race(workbench_, pace_, present_, *subject_, random_);
      const size_t begin = group * size;
      const size_t count = std::min(all.size() - begin, size);
      const size_t end = begin + fitting(count, kLeastRounds, end_of_search());
      for (size_t i = begin; i < end; ++i) {
        workbench_.progress("starting: " + all[i]->row.candidate.name());
        race.add(*all[i]);
      }
      const double share = static_cast<double>(group + 1) / static_cast<double>(groups);
      race.run("each setting by itself", Race::Rival::kPresent, until(kUntilSingles * share),
               end_of_search(), kRounds);
    }
  }

  /// The best of each axis, as far as they are faster than the present settings; the best first.
  std::vector<Runner*> best_singles() {
    std::vector<std::pair<double, Runner*>> found;
    for (const Alternatives& axis : axes_) {
      std::pair<double, Runner*> best{kLeastGain, nullptr};
      for (const Candidate& candidate : axis) {
        Runner& runner = runner_of(candidate);
        if (!runner.row.failure.empty()) continue;
        const Ratio ratio = ratio_of(runner.ratios, kHelpsError);
        if (!ratio.is_faster() && ratio.median < kLargeGain) continue;
        if (ratio.median > best.first) best = {ratio.median, &runner};
      }
      if (best.second != nullptr) found.push_back(best);
    }
    std::ranges::stable_sort(found, std::greater<>(), [](const auto& each) { return each.first; });
    std::vector<Runner*> runners;
    for (const auto& [median, runner] : found) runners.push_back(runner);
    return runners;
  }

  /// The best two together, the best three, and so on; the same with what makes no sense beside
  /// these in its place. Returns the best, the fastest first.
  std::vector<Runner*> measure_together(const std::vector<Runner*>& singles) {
    if (singles.size() < 2) return singles;
    std::vector<Runner*> all{singles[0], singles[1]};
    const std::vector<size_t> left_out = add_chain(singles, 0, all);
    for (size_t i = 0; i < std::min(left_out.size(), kMostOtherChains); ++i) {
      all.push_back(singles[left_out[i]]);
      add_chain(singles, left_out[i], all);
    }
    return race(all, singles, "together what helps", kUntilTogether);
  }

  /// From one of them on; returns those that make no sense beside it.
  std::vector<size_t> add_chain(const std::vector<Runner*>& singles, size_t first,
                                std::vector<Runner*>& all) {
    std::vector<size_t> left_out;
    Candidate together = singles[first]->row.candidate;
    for (size_t i = 0; i < singles.size(); ++i) {
      if (i == first) continue;
      if (together.overlaps(singles[i]->row.candidate)) {
        left_out.push_back(i);
        continue;
      }
      together = together.with(singles[i]->row.candidate);
      all.push_back(&runner_of(together));
    }
    return left_out;
  }

  /// Beside the best: what did not matter by itself.
  std::vector<Runner*> measure_beside(const std::vector<Runner*>& best) {
    if (best.empty()) return best;
    const Candidate base = best.front()->row.candidate;
    std::vector<std::pair<double, Runner*>> others;
    for (const Alternatives& axis : axes_) {
      for (const Candidate& candidate : axis) {
        if (base.overlaps(candidate)) continue;
        const Runner& alone = runner_of(candidate);
        const double median = ratio_of(alone.ratios, kUsualError).median;
        Runner& beside = runner_of(base.with(candidate));
        if (!alone.row.failure.empty() || median < kHopeless || !beside.times.empty()) continue;
        others.emplace_back(median, &beside);
      }
    }
    if (others.empty()) return best;
    std::ranges::stable_sort(others, std::greater<>(), [](const auto& each) { return each.first; });
    if (others.size() > kMostBeside) others.resize(kMostBeside);
    std::vector<Runner*> all{best.front()};
    for (const auto& [median, runner] : others) all.push_back(runner);
    return race(all, best, "beside the best", kUntilBeside, /*first_stays=*/true);
  }

  /// As many of `all` as there are room and time for; returns the best, or `before` where no two
  /// can race.
  std::vector<Runner*> race(std::vector<Runner*> all, const std::vector<Runner*>& before,
                            const std::string& what, double share, bool first_stays = false) {
    std::set<Runner*> seen;
    std::erase_if(all, [&](Runner* runner) { return !seen.insert(runner).second; });
    if (all.size() > workbench_.room()) all.resize(std::max<size_t>(2, workbench_.room()));
    const size_t count = fitting(all.size(), kLeastRounds, end_of_search());
    if (count < 2) return before;
    all.resize(count);
    Race race(workbench_, pace_, present_, *subject_, random_);
    for (Runner* runner : all) {
      workbench_.progress("starting: " + runner->row.candidate.name());
      runner->row.was_dropped = false;
      race.add(*runner, first_stays && runner == all.front());
    }
    race.run(what, Race::Rival::kBest, until(share), end_of_search(), kRounds);
    return simplest_first(race);
  }

  /// The ranking, but that of those that are as fast as the best the one that changes the least
  /// comes first, and then the best.
  static std::vector<Runner*> simplest_first(const Race& race) {
    std::vector<Runner*> order = race.ranking();
    size_t simplest = 0;
    for (size_t i = 1; i < order.size(); ++i) {
      const Ratio ratio = race.compare(*order[i], *order.front(), kTieError);
      const bool is_tie = ratio.median > kTie || (!ratio.is_slower() && ratio.median > kTieInNoise);
      const auto changes = [&](size_t of) { return order[of]->row.candidate.settings.size(); };
      if (is_tie && changes(i) < changes(simplest)) simplest = i;
    }
    const auto at = order.begin() + static_cast<std::ptrdiff_t>(simplest);
    if (simplest > 0) std::rotate(order.begin(), at, at + 1);
    return order;
  }

  /// The first two of `best`: one that changes little, and one that may be faster. In new
  /// processes, as where its memory lies makes a process faster or slower, too.
  void confirm(const std::vector<Runner*>& best) {
    std::vector<Runner*> finalists;
    for (Runner* runner : best) {
      const bool is_hopeful = ratio_of(runner->ratios, kUsualError).median > kLeastGain;
      if (is_hopeful && finalists.size() < kMostFinalists) finalists.push_back(runner);
    }
    if (finalists.empty()) return;
    const size_t fit = fitting(finalists.size(), kFewestToConfirm, time_limit_ - pace_.start);
    if (fit == 0) {
      for (const Runner* runner : finalists) not_confirmed_.push_back(runner->row.candidate.name());
      return;
    }
    finalists.resize(fit);
    start_present("starting again");
    Race race(workbench_, pace_, present_, *subject_, random_);
    for (Runner* runner : finalists) race.add(*runner);
    for (size_t rounds = 1; rounds <= kMostToConfirm && !race.is_empty(); ++rounds) {
      if (workbench_.seconds() + race.round_seconds() > time_limit_) break;
      workbench_.progress("measuring the best again");
      race.round();
      if (rounds >= kFewestToConfirm && !race.is_empty() && is_decided(race)) break;
    }
    decide(race);
    for (const Runner* runner : finalists) {
      if (winner_ == nullptr) not_confirmed_.push_back(runner->row.candidate.name());
    }
    subject_.reset();
  }

  static bool is_confirmed(const Ratio& ratio) {
    return ratio.is_faster() && ratio.median > kLeastGain;
  }

  /// Whether further rounds would change nothing that matters.
  bool is_decided(const Race& race) const {
    const std::vector<Runner*> order = race.ranking();
    for (const Runner* runner : order) {
      const Ratio ratio = race.ratio(*runner, kConfirmError);
      if (!is_confirmed(ratio) && !ratio.is_slower()) return false;
    }
    if (order.size() < 2) return true;
    const Ratio lead = race.compare(*order[0], *order[1], kConfirmError);
    const bool is_small = lead.median < kLeastLead && lead.count >= kEnoughForTie;
    return is_confirmed(lead) || is_small;
  }

  /// The simplest that is confirmed against the present settings, unless another is confirmed
  /// against it.
  void decide(const Race& race) {
    std::vector<Runner*> order = race.ranking();
    std::ranges::stable_sort(
        order, {}, [](const Runner* runner) { return runner->row.candidate.settings.size(); });
    for (Runner* runner : order) {
      const Ratio ratio = race.ratio(*runner, kConfirmError);
      if (!is_confirmed(ratio)) continue;
      if (winner_ != nullptr && !is_confirmed(race.compare(*runner, *winner_, kConfirmError))) {
        continue;
      }
      winner_ = runner;
      confirmed_ = ratio;
    }
  }

  static TunedRow row_of(const Runner& runner) {
    TunedRow row = runner.row;
    row.speed = ratio_of(runner.ratios, kUsualError);
    row.step_seconds = ratio_of(runner.times, kUsualError).median;
    return row;
  }

  TuneResult result() {
    TuneResult result;
    result.not_confirmed = not_confirmed_;
    result.present = row_of(present_);
    if (winner_ != nullptr) {
      result.winner = winner_->row.candidate;
      result.confirmed = confirmed_;
    }
    for (const Alternatives& axis : axes_) {
      for (const Candidate& candidate : axis) {
        const TunedRow& row = runner_of(candidate).row;
        if (runner_of(candidate).times.empty() && row.failure.empty()) {
          result.not_tried.push_back(candidate.name());
        }
      }
    }
    for (const Runner& runner : runners_) {
      if (runner.times.empty() && runner.row.failure.empty()) continue;
      TunedRow row = row_of(runner);
      if (winner_ != nullptr && &runner != winner_ && row.failure.empty()) {
        const Ratio best = ratio_of(winner_->ratios, kUsualError);
        row.is_as_fast =
            !row.was_dropped && row.speed.high >= best.low && row.speed.median > kTie * best.median;
      }
      result.rows.push_back(std::move(row));
    }
    std::ranges::stable_sort(result.rows, [](const TunedRow& a, const TunedRow& b) {
      if (a.failure.empty() != b.failure.empty()) return a.failure.empty();
      return a.speed.median > b.speed.median;
    });
    return result;
  }

  const std::vector<Alternatives>& axes_;
  Workbench& workbench_;
  double time_limit_;  ///< Seconds of the workbench at which all must be over.
  Pace pace_;
  Random random_;
  Runner present_;
  std::unique_ptr<Subject> subject_;  ///< Of the present settings.
  std::deque<Runner> runners_;
  Runner* winner_ = nullptr;
  Ratio confirmed_;
  std::vector<std::string> not_confirmed_;
};

}  // namespace

TuneResult search_settings(const std::vector<Alternatives>& axes, Workbench& workbench,
                           double time_limit, uint64_t seed) {
  return Search(axes, workbench, time_limit, seed).run();
}

}  // namespace stepop
