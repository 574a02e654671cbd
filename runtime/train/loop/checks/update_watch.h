#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/train/iterator/context.h"

namespace stepop {

/// Checks, once in a start, that the updates happen and reach the parameters that they train. An
/// update may be due only every few steps, and a layer may be used for some batches only; so the
/// check comes after 100 steps, or at the end of a shorter training.
class UpdateWatch {
 public:
  static constexpr int64_t kSteps = 100;

  /// The training goes from `first_step` complete steps to `num_steps`.
  UpdateWatch(const Context& context, int64_t first_step, int64_t num_steps);

  /// To be called when `global_step` steps are complete. Returns warnings, one for an update that
  /// was never made, one for those of its parameters that never had a gradient, and one for
  /// `checkpoint_modules` that never ran.
  std::vector<std::string> after_step(int64_t global_step);

 private:
  const Context& context_;
  int64_t first_step_;
  int64_t due_;  ///< The step after which it checks.
};

}  // namespace stepop
