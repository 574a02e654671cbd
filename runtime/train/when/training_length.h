#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/config/config.h"

namespace stepop {

/// How long a training is, as its config says.
struct TrainingLength {
  int64_t steps_per_epoch = 1;
  int64_t num_steps = 1;
  int64_t examples_per_step = 1;

  bool operator==(const TrainingLength&) const = default;
};

/// During its lifetime, lengths that this thread reads may be in epochs and in parts of the
/// training.
class LengthScope {
 public:
  /// `find` is called for the first such length.
  explicit LengthScope(std::function<TrainingLength()> find);
  ~LengthScope();
  LengthScope(const LengthScope&) = delete;
  LengthScope& operator=(const LengthScope&) = delete;

  /// The length, if something that was read depends on it.
  const std::optional<TrainingLength>& used() const { return found_; }

  /// Throws UsageError at `path` without a scope.
  static TrainingLength find(const Config& config, std::string_view path);

 private:
  std::function<TrainingLength()> find_;
  std::optional<TrainingLength> found_;
  LengthScope* before_;
};

/// During its lifetime, `end` is so many steps nearer: what this thread reads begins then.
class LaterBegin {
 public:
  explicit LaterBegin(int64_t steps);
  ~LaterBegin();
  LaterBegin(const LaterBegin&) = delete;
  LaterBegin& operator=(const LaterBegin&) = delete;

  /// The sum of all that exist on this thread.
  static int64_t steps();

 private:
  int64_t steps_;
};

/// During its lifetime, what this thread reads counts epochs where it would count steps: `gamma` of
/// a schedule, and lengths that are not given. Lengths that are given keep their units.
class CountsEpochs {
 public:
  explicit CountsEpochs(int64_t steps_per_epoch);
  ~CountsEpochs();
  CountsEpochs(const CountsEpochs&) = delete;
  CountsEpochs& operator=(const CountsEpochs&) = delete;

  /// The steps of an epoch, if epochs are counted.
  static std::optional<int64_t> epoch();
  /// The steps of what is counted: of an epoch, else 1.
  static int64_t steps() { return epoch().value_or(1); }

  struct Length {
    std::string place;  ///< Its key in the config.
    int64_t steps;
  };
  /// Called for each length that is read as a bare number.
  static void note(const Config& config, std::string_view path, int64_t steps);
  /// The bare numbers so far that are shorter than an epoch, and may have been meant as epochs.
  const std::vector<Length>& short_lengths() const { return short_lengths_; }

 private:
  int64_t epoch_;
  std::vector<Length> short_lengths_;
  CountsEpochs* before_;
};

}  // namespace stepop
