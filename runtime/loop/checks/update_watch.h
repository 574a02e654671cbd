#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/iterator/context.h"

namespace stepop {

/// Looks, once in a start, whether the updates happen and reach what they are to train. An update
/// may be due every few steps only, and a layer be used for some batches only; so it looks when 100
/// steps are done, or all of a shorter training.
class UpdateWatch {
 public:
  static constexpr int64_t kSteps = 100;

  /// The training goes from `first_step` complete steps to `num_steps`.
  UpdateWatch(const Context& context, int64_t first_step, int64_t num_steps);

  /// To be called when `global_step` steps are complete. Returns warnings, one for an update that
  /// was never made and one for those of its parameters that never had a gradient.
  std::vector<std::string> after_step(int64_t global_step);

 private:
  const Context& context_;
  int64_t first_step_;
  int64_t due_;  ///< The step at which it looks.
};

}  // namespace stepop
