#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "runtime/core/config/config.h"

namespace stepop {

/// How long a training is, as its config says.
struct TrainingLength {
  int64_t steps_per_epoch = 1;
  int64_t num_steps = 1;

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

  /// Of all that live on this thread.
  static int64_t steps();

 private:
  int64_t steps_;
};

}  // namespace stepop
