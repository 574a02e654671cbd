#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>

#include "runtime/core/log/logs.h"
#include "runtime/train/iterator/context.h"
#include "runtime/train/when/settings.h"

namespace stepop {

/// The parameters of updates that match `telemetry/parameters`, as `optimizer/conv1.weight`, with
/// the update before the slash. Throws UsageError when no trained parameter matches.
std::set<std::string> counted_parameters(const Context& context, const TelemetrySettings& settings);

/// Additional numbers in each log of a training: learning rates, the norms of gradients, the speed,
/// the memory; on request also histograms of weights and gradients. Costs almost nothing in steps
/// without a log.
class Telemetry {
 public:
  using Clock = std::chrono::steady_clock;

  /// Both must outlive this. The measurement starts now.
  Telemetry(const Context& context, const TelemetrySettings& settings);
  ~Telemetry();  ///< Stops watching the gradients of updates.
  Telemetry(const Telemetry&) = delete;
  Telemetry& operator=(const Telemetry&) = delete;

  /// Called before a step from `before` to `after`. `is_logged`: a log will follow the step.
  void begin_step(bool is_logged, const Elapsed& before, const Elapsed& after);

  /// Adds time in which the loop waited for examples.
  void add_wait(Clock::duration time) { waited_ += time; }
  /// Excludes time that was no training, such as an evaluation.
  void leave_out(Clock::duration time) { begin_ += time; }

  /// Whether something is due that does not need a log.
  bool is_due(const Elapsed& before, const Elapsed& now) const;

  /// The numbers to log at `now`, by names such as `optimizer/lr`. Starts the next measurement.
  /// Nothing when they were taken since the last step.
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
  OrderedMap<at::Tensor> norms_;      ///< For the current step, by the update's name.
  OrderedMap<at::Tensor> gradients_;  ///< For histograms, by full name.
  Clock::time_point begin_ = Clock::now();
  Clock::duration waited_{0};
  int64_t steps_ = 0;  ///< The steps at `begin_`.
  int64_t samples_ = 0;
  bool is_taken_ = false;  ///< Since the last step.
};

}  // namespace stepop
