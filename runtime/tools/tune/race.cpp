#include "runtime/tools/tune/race.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace stepop {
namespace {

/// So many candidates between two portions of the present settings: the machine changes meanwhile.
constexpr size_t kBetween = 3;
/// Rounds between two looks at who is slower.
constexpr size_t kLookEvery = 3;
constexpr size_t kLookAtBestEvery = 4;
/// Rounds after which the worse half is dropped.
constexpr size_t kHalveEvery = 6;
/// One that was slower each time is dropped when it is so by its median.
constexpr double kSlowerThanPresent = 0.97;
constexpr double kSlowerThanBest = 0.93;
constexpr size_t kFewestKept = 3;
constexpr double kHintError = 0.2;

double median_of(const std::vector<double>& ratios) { return ratio_of(ratios, 0).median; }

bool was_always_below(const std::vector<double>& ratios, double median) {
  return std::ranges::all_of(ratios, [](double ratio) { return ratio < 1; }) &&
         median_of(ratios) < median;
}

}  // namespace

double Race::portions_of(size_t candidates) {
  return static_cast<double>(candidates + (candidates + kBetween - 1) / kBetween + 1);
}

void Race::add(Runner& runner, bool stays) {
  const Timed timed(workbench_, pace_.start);
  try {
    auto subject = workbench_.start(runner.row.candidate);
    runner.row.memory = std::max(runner.row.memory, subject->memory());
    entries_.push_back({&runner, std::move(subject), stays});
  } catch (const CandidateFailed& failed) {
    runner.row.failure = failed.what();
  }
}

double Race::measure_present() {
  const double time = subject_.measure();
  present_.row.memory = std::max(present_.row.memory, subject_.memory());
  if (!present_.times.empty()) present_.ratios.push_back(present_.times.back() / time);
  present_.times.push_back(time);
  return time;
}

void Race::round() {
  const double started = workbench_.seconds();
  const double portions = portions_of(entries_.size());
  std::vector<Entry*> order;
  for (Entry& entry : entries_) order.push_back(&entry);
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<size_t>(random_.below(static_cast<int64_t>(i)))]);
  }
  std::vector<Runner*> failed;
  double before = measure_present();
  for (size_t begin = 0; begin < order.size(); begin += kBetween) {
    std::vector<std::pair<Entry*, double>> measured;
    for (size_t i = begin; i < std::min(order.size(), begin + kBetween); ++i) {
      try {
        measured.emplace_back(order[i], order[i]->subject->measure());
      } catch (const CandidateFailed& error) {
        order[i]->runner->row.failure = error.what();
        failed.push_back(order[i]->runner);
      }
    }
    const double after = measure_present();
    for (const auto& [entry, time] : measured) {
      const double ratio = std::sqrt(before * after) / time;
      entry->ratios.push_back(ratio);
      entry->runner->ratios.push_back(ratio);
      entry->runner->times.push_back(time);
      entry->runner->row.memory = std::max(entry->runner->row.memory, entry->subject->memory());
    }
    before = after;
  }
  std::erase_if(entries_, [&](const Entry& entry) {
    return std::ranges::find(failed, entry.runner) != failed.end();
  });
  pace_.portion = (workbench_.seconds() - started) / portions;
}

void Race::run(const std::string& what, Rival rival, double deadline, double end, Rounds limits) {
  for (size_t rounds = 1; rounds <= limits.most && !entries_.empty(); ++rounds) {
    const double now = workbench_.seconds();
    if ((rounds > limits.fewest && now >= deadline) || now + round_seconds() > end) return;
    workbench_.progress(what);
    round();
    const bool is_against_present = rival == Rival::kPresent;
    if (rounds % (is_against_present ? kLookEvery : kLookAtBestEvery) == 0) drop_slower(rival);
    // Among the best, halves would differ by noise.
    if (is_against_present && rounds % kHalveEvery == 0) drop_half();
  }
}

void Race::drop_slower(Rival rival) {
  const std::vector<Runner*> order = ranking();
  const double limit = rival == Rival::kPresent ? kSlowerThanPresent : kSlowerThanBest;
  std::erase_if(entries_, [&](const Entry& entry) {
    if (entry.stays) return false;
    std::vector<double> ratios = entry.ratios;
    if (rival == Rival::kBest) {
      if (entry.runner == order.front()) return false;
      const Entry& best = entry_of(*order.front());
      for (size_t i = 0; i < ratios.size(); ++i) ratios[i] /= best.ratios[i];
    }
    entry.runner->row.was_dropped = was_always_below(ratios, limit);
    return entry.runner->row.was_dropped;
  });
}

/// One that is faster than the present settings stays: it may be so together with another.
void Race::drop_half() {
  const std::vector<Runner*> order = ranking();
  for (size_t i = std::max(kFewestKept, (order.size() + 1) / 2); i < order.size(); ++i) {
    if (ratio(*order[i], kHintError).is_faster()) continue;
    order[i]->row.was_dropped = true;
    std::erase_if(entries_, [&](const Entry& entry) { return entry.runner == order[i]; });
  }
}

const Race::Entry& Race::entry_of(const Runner& runner) const {
  return *std::ranges::find_if(entries_,
                               [&](const Entry& entry) { return entry.runner == &runner; });
}

std::vector<Runner*> Race::ranking() const {
  std::vector<std::pair<double, Runner*>> order;
  for (const Entry& entry : entries_) order.emplace_back(median_of(entry.ratios), entry.runner);
  std::ranges::stable_sort(order, std::greater<>(), [](const auto& each) { return each.first; });
  std::vector<Runner*> runners;
  for (const auto& [median, runner] : order) runners.push_back(runner);
  return runners;
}

Ratio Race::compare(const Runner& a, const Runner& b, double error) const {
  std::vector<double> ratios = entry_of(a).ratios;
  const std::vector<double>& others = entry_of(b).ratios;
  for (size_t i = 0; i < ratios.size(); ++i) ratios[i] /= others[i];
  return ratio_of(std::move(ratios), error);
}

Ratio Race::ratio(const Runner& runner, double error) const {
  return ratio_of(entry_of(runner).ratios, error);
}

}  // namespace stepop
