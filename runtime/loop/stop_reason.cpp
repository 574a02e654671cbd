#include "runtime/loop/stop_reason.h"

#include <fmt/format.h>

#include "runtime/base/number_text.h"
#include "runtime/run/signals.h"

namespace stepop {

StopReason stop_reason(Session& session, int64_t first_step,
                       std::chrono::steady_clock::time_point deadline) {
  using Kind = StopReason::Kind;
  if (const int signal = SignalGuard::received()) {
    return {Kind::kSignal, signal_name(signal) + " arrived", signal};
  }
  if (std::chrono::steady_clock::now() >= deadline) return {Kind::kTime, "max_time is over", 0};
  const int64_t num_steps = session.settings().num_steps;
  const std::string steps = with_thousands(num_steps);
  if (session.position().global_step < num_steps) {
    const auto text = session.stop_when().reason();
    return text ? StopReason{Kind::kMetric, *text, 0} : StopReason{};
  }
  if (session.position().global_step > first_step) {
    return {Kind::kDone, fmt::format("all {} steps are done", steps), 0};
  }
  return {
      Kind::kDone,
      fmt::format("all {} steps were done before; a larger num_epochs or num_steps goes on", steps),
      0};
}

}  // namespace stepop
