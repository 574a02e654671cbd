#include "runtime/train/loop/run_ahead.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "runtime/core/base/number_text.h"
#include "runtime/core/base/shell_text.h"
#include "runtime/train/run/evaluated_step.h"

namespace stepop {
namespace {

constexpr std::chrono::milliseconds kLookEvery{200};

}  // namespace

bool RunAhead::is_too_far(int64_t step) const {
  return step - evaluated_step(run_).value_or(0) >= most_steps_;
}

void RunAhead::wait(int64_t step, const std::function<bool()>& is_to_stop) {
  if (most_steps_ == 0 || !is_too_far(step) || is_to_stop()) return;
  const auto begin = std::chrono::steady_clock::now();
  const auto reached = evaluated_step(run_);
  console_.info(fmt::format(
      "step {}: run_ahead: waiting for evaluations, {}; they are made by:  stepop -p {} "
      "--eval_forever true",
      with_thousands(step),
      reached ? fmt::format("which are at step {}", with_thousands(*reached))
              : "of which there is none yet",
      shell_word(run_.root())));
  while (is_too_far(step) && !is_to_stop()) std::this_thread::sleep_for(kLookEvery);
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
  console_.info(fmt::format("waited for evaluations: {}", clock_text(waited.count())));
}

}  // namespace stepop
