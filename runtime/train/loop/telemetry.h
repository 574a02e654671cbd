#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>

#include "runtime/core/log/logs.h"
#include "runtime/train/iterator/context.h"
#include "runtime/train/when/settings.h"

namespace stepop {

/// The parameters of updates that `telemetry/parameters` names, as `optimizer/conv1.weight`, the
/// update before the slash. Throws UsageError when there are none of those that are trained.
std::set<std::string> counted_parameters(const Context& context, const TelemetrySettings& settings);

/// What a training tells of itself at each log, beside what its ops return: learning rates, the
/// norms of gradients, its speed, its memory; on request also how weights and gradients are
/// distributed. Costs next to nothing in steps that are not logged.
class Telemetry {
 public:
  using Clock = std::chrono::steady_clock;

  /// Both must outlive this; measures from now on.
  Telemetry(const Context& context, const TelemetrySettings& settings);
  ~Telemetry();  ///< No update shows it its gradients any more.
  Telemetry(const Telemetry&) = delete;
  Telemetry& operator=(const Telemetry&) = delete;

  /// Before a step that leads from `before` to `after`. `is_logged`: a log will follow it.
  void begin_step(bool is_logged, const Elapsed& before, const Elapsed& after);

  /// Time in which the loop waited for examples.
  void add_wait(Clock::duration time) { waited_ += time; }
  /// Time that was no training, such as an evaluation.
  void leave_out(Clock::duration time) { begin_ += time; }

  /// Whether something is due that does not wait for a log.
  bool is_due(const Elapsed& before, const Elapsed& now) const;

  /// What there is to log at `now`, by names such as `optimizer/lr`; the next measurement begins.
  Logs take(const Elapsed& before, const Elapsed& now);

 private:
  bool counts_weights(const Elapsed& before, const Elapsed& now) const;
  void look_at_gradients(const std::string& update, const NamedParameters& parameters, bool counts);
  void add_rates(Logs& logs) const;
  void add_speed(Logs& logs);
  void add_memory(Logs& logs) const;
  void add_weights(Logs& logs) const;

  const Context& context_;
  const TelemetrySettings& settings_;
  std::set<std::string> counted_;
  OrderedMap<at::Tensor> norms_;      ///< Of the step at hand, by the update's name.
  OrderedMap<at::Tensor> gradients_;  ///< The same, to be counted; by their full names.
  Clock::time_point begin_ = Clock::now();
  Clock::duration waited_{0};
  int64_t steps_ = 0;  ///< At `begin_`.
  int64_t samples_ = 0;
};

}  // namespace stepop
