#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "runtime/core/config/resolve.h"

namespace stepop {

/// The values of one run of a sweep, merged over the base configs.
using SweepPoint = std::vector<Override>;

/// The contents of a sweep file; see README.md.
struct SweepFile {
  std::string name;
  std::vector<std::string> base;   ///< Config files, with paths from the current folder.
  std::vector<SweepPoint> points;  ///< Without duplicates.
  std::set<std::string> sampled;   ///< Keys whose values are drawn from a range.
  std::vector<std::string> over;   ///< Keys over which results are averaged.
  std::string metric;              ///< Empty for the config's own metric.
  std::string mode;                ///< `max`, `min`; empty: from the metric's name or the config.
  int64_t jobs = 1;                ///< The number of simultaneous runs.
};

/// The most runs in a sweep.
inline constexpr size_t kMostSweepRuns = 10'000;

/// The most simultaneous runs.
inline constexpr int64_t kMostSweepJobs = 256;

/// Reads a sweep file. Throws UsageError, with the place, for all errors in the file; the config
/// keys that it names are not checked.
SweepFile read_sweep_file(const std::string& path);

/// A table of all keys that a sweep file may have.
std::string sweep_keys_text();

/// `optimizer/lr=0.001 seed=1`, as on a command line.
std::string point_text(const Value::Map& values);

/// A point's values as a map, by path.
Value::Map values_of(const SweepPoint& point);

/// Points that together have every value of every key, so that a check of these points finds bad
/// values before the sweep. For values from a range, and for numbers in `over`, one value is
/// enough.
std::vector<size_t> points_with_all_values(const SweepFile& sweep);

}  // namespace stepop
