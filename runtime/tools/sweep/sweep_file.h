#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "runtime/core/config/resolve.h"

namespace stepop {

/// The values of one run of a sweep, laid over the base configs.
using SweepPoint = std::vector<Override>;

/// What a sweep file asks for; see README.md.
struct SweepFile {
  std::string name;
  std::vector<std::string> base;   ///< Config files, by paths from the current folder.
  std::vector<SweepPoint> points;  ///< No two are alike.
  std::set<std::string> sampled;   ///< Keys whose values are drawn from a range.
  std::vector<std::string> over;   ///< Keys over which the mean goes.
  std::string metric;              ///< Empty: the config's own.
  std::string mode;                ///< `max`, `min`; empty: by the metric's name or the config.
  int64_t jobs = 1;                ///< Runs at a time.
};

/// A sweep has at most this many runs.
inline constexpr size_t kMostSweepRuns = 10'000;

/// Runs at a time are at most so many.
inline constexpr int64_t kMostSweepJobs = 256;

/// Reads a sweep file. Throws UsageError, with the place, for everything that is wrong with it;
/// the keys of the config that it names are not looked at.
SweepFile read_sweep_file(const std::string& path);

/// `optimizer/lr=0.001 seed=1`, as on a command line.
std::string point_text(const Value::Map& values);

/// The values of a point as a map, by their paths.
Value::Map values_of(const SweepPoint& point);

/// The points that together have every value of every key: what is to be tried so that no value is
/// met for the first time in the middle of a sweep. Of values that are drawn from a range, and of
/// numbers in `over`, one stands for all.
std::vector<size_t> points_with_all_values(const SweepFile& sweep);

}  // namespace stepop
