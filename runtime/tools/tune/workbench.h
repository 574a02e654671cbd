#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "runtime/core/base/error.h"
#include "runtime/tools/tune/candidate.h"
#include "runtime/tools/tune/ratios.h"

namespace stepop {

/// A candidate cannot train, and why: `out of memory`.
class CandidateFailed : public Error {
 public:
  using Error::Error;
};

/// A training with a candidate's settings, which rests but for `measure`.
class Subject {
 public:
  virtual ~Subject() = default;
  /// Seconds of a step, of one short portion of steps. Throws CandidateFailed.
  virtual double measure() = 0;
  /// The most bytes that it had so far, of all its processes.
  virtual double memory() const = 0;
};

/// What starts trainings to be measured.
class Workbench {
 public:
  virtual ~Workbench() = default;
  /// Throws CandidateFailed.
  virtual std::unique_ptr<Subject> start(const Candidate& candidate) = 0;
  /// Seconds since the search began.
  virtual double seconds() const = 0;
  /// How many may live at once beside the present settings, one at least.
  virtual size_t room() const = 0;
  /// Called often: what is being done.
  virtual void progress(const std::string& what) = 0;
};

/// What is known of a candidate after the search.
struct TunedRow {
  Candidate candidate;
  Ratio speed = {};          ///< Against the present settings, with an error of 0.05.
  double step_seconds = 0;   ///< The median.
  double memory = 0;         ///< Bytes.
  std::string failure = {};  ///< Why it could not be measured.
  bool is_as_fast = false;   ///< As the winner, as far as the noise allows to say.
  bool was_dropped = false;  ///< Early, as clearly slower than another.
};

}  // namespace stepop
