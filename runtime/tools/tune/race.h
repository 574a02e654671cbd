#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/base/random.h"
#include "runtime/tools/tune/workbench.h"

namespace stepop {

/// One that takes part in races, with all that was measured of it.
struct Runner {
  TunedRow row;
  std::vector<double> times = {};   ///< Seconds of a step.
  std::vector<double> ratios = {};  ///< Against the present settings.
};

/// What things took, in seconds, from which follows what still fits.
struct Pace {
  double start = 0;    ///< The slowest start so far.
  double portion = 0;  ///< A portion of the last round, with all that it waited for.
};

/// Raises `longest` to the seconds for which this object lives.
class Timed {
 public:
  Timed(const Workbench& workbench, double& longest)
      : workbench_(workbench), longest_(longest), begin_(workbench.seconds()) {}
  ~Timed() { longest_ = std::max(longest_, workbench_.seconds() - begin_); }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  const Workbench& workbench_;
  double& longest_;
  double begin_;
};

/// Candidates that take turns with the present settings.
class Race {
 public:
  /// Against what one counts as clearly slower.
  enum class Rival { kPresent, kBest };

  /// All must outlive it. Those that cannot start are marked as failed and take no part.
  Race(Workbench& workbench, Pace& pace, Runner& present, Subject& subject, Random& random)
      : workbench_(workbench), pace_(pace), present_(present), subject_(subject), random_(random) {}

  /// One that `stays` is never dropped.
  void add(Runner& runner, bool stays = false);

  /// How many rounds there are at least, whatever the time, and at most.
  struct Rounds {
    size_t fewest;
    size_t most;
  };

  /// Rounds until `deadline`, in seconds of the workbench, or nobody is left. No round is begun
  /// that would not be over at `end`.
  void run(const std::string& what, Rival rival, double deadline, double end, Rounds rounds);
  /// What the next round takes, in seconds.
  double round_seconds() const { return pace_.portion * portions_of(entries_.size()); }
  /// Those of a round with so many candidates, those of the present settings among them.
  static double portions_of(size_t candidates);

  /// One round: each that is left has a portion between two of the present settings.
  void round();

  /// Those that are left, by their medians in this race, the fastest first.
  std::vector<Runner*> ranking() const;
  /// How many times faster `a` was than `b` in the same rounds of this race.
  Ratio compare(const Runner& a, const Runner& b, double error) const;
  /// Against the present settings in this race.
  Ratio ratio(const Runner& runner, double error) const;
  bool is_empty() const { return entries_.empty(); }

 private:
  struct Entry {
    Runner* runner;
    std::unique_ptr<Subject> subject;
    bool stays = false;
    std::vector<double> ratios = {};
  };

  const Entry& entry_of(const Runner& runner) const;
  double measure_present();
  void drop_slower(Rival rival);
  void drop_half();

  Workbench& workbench_;
  Pace& pace_;
  Runner& present_;
  Subject& subject_;
  Random& random_;
  std::list<Entry> entries_;
};

}  // namespace stepop
