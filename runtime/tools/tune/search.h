#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/tools/tune/candidate.h"
#include "runtime/tools/tune/ratios.h"

namespace stepop {

/// A candidate cannot train, and why: `out of memory`.
class CandidateFailed : public Error {
 public:
  using Error::Error;
};

/// The time limit came during a start or a measurement.
class TimeOver : public Error {
 public:
  TimeOver() : Error("the time was over before anything was measured") {}
};

/// A training with a candidate's settings. It only runs within `measure`.
class Subject {
 public:
  virtual ~Subject() = default;
  /// Trains a short portion of steps; returns the seconds of a step. Throws CandidateFailed and
  /// TimeOver.
  virtual double measure() = 0;
  /// The most bytes that all its processes had so far.
  virtual double memory() const = 0;
};

/// Starts trainings for the search, and keeps the time.
class Workbench {
 public:
  virtual ~Workbench() = default;
  /// Throws CandidateFailed and TimeOver.
  virtual std::unique_ptr<Subject> start(const Candidate& candidate) = 0;
  virtual double seconds_left() const = 0;
  /// From now on TimeOver is thrown when only so many seconds are left.
  virtual void keep(double seconds) = 0;
  /// How many candidates fit into memory beside the present settings; at least one.
  virtual size_t room() const = 0;
  /// Reports what happens now; called often.
  virtual void progress(const std::string& what) = 0;
};

/// What was measured of a candidate.
struct TunedRow {
  Candidate candidate = {};
  Ratio speed = {};          ///< Against the present settings, with an error of 0.05.
  double step_seconds = 0;   ///< The median.
  double memory = 0;         ///< Bytes.
  std::string failure = {};  ///< Why it could not be measured.
};

struct TuneResult {
  /// Empty when nothing is faster than the present settings beyond the noise.
  Candidate winner = {};
  Ratio confirmed = {};  ///< The winner's speed in the confirmation, with an error of 0.002.
  std::vector<std::string> not_confirmed = {};  ///< Faster at first, but not in the confirmation.
  std::vector<std::string> not_measured_again = {};  ///< The same, where the time was over.
  std::vector<std::string> not_tried = {};           ///< There was no time for these.
  TunedRow present = {};            ///< Its `speed` is its noise: of one portion against the next.
  std::vector<TunedRow> rows = {};  ///< The fastest first, failed ones last.
};

/// Measures each of `singles` by itself against the present settings, in alternating portions. Then
/// measures once more, in new processes: the fastest single, and all together that were faster
/// beyond the noise. The fastest single wins, unless all together are faster than it. Only what is
/// faster than the present settings in this confirmation wins.
///
/// `present` is a training with the present settings, whose start took `start_seconds`. Throws what
/// starting and measuring it throws.
TuneResult search_settings(const std::vector<Candidate>& singles, std::unique_ptr<Subject> present,
                           double start_seconds, Workbench& workbench);

}  // namespace stepop
