#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/train/iterator/context.h"

namespace stepop {

/// Checks, once per start, that the updates happen and reach the parameters that they train. An
/// update may be due only every few steps, and a layer may be used for some batches only; therefore
/// the check comes after 100 steps, or at the end of a shorter training.
class UpdateWatch {
 public:
  static constexpr int64_t kSteps = 100;

  /// The training runs from `first_step` complete steps to `num_steps`.
  UpdateWatch(const Context& context, int64_t first_step, int64_t num_steps);

  /// Called when `global_step` steps are complete. Returns warnings: about each update that was
  /// never made, about parameters of an update that never had a gradient, and about
  /// `checkpoint_modules` that never ran.
  std::vector<std::string> after_step(int64_t global_step);

 private:
  const Context& context_;
  int64_t first_step_;
  int64_t due_;  ///< The step after which the check runs.
};

}  // namespace stepop
