// Reads from the config which checkpoints stay.
#include <fmt/format.h>

#include "runtime/core/log/metric_direction.h"
#include "runtime/train/keys/own_keys.h"
#include "runtime/train/when/settings.h"

namespace stepop {
namespace {

constexpr const char* kMetricExample = "validation/eval_op/accuracy/accuracy";

void read_metric(const Config& config, Retention& retention) {
  if (!config.has("metric")) {
    for (const char* key : {"keep_best", "mode"}) {
      if (!config.has(key)) continue;
      throw config.error(key, fmt::format("needs checkpoints/metric, the number that says which "
                                          "checkpoint is the best, such as {}",
                                          kMetricExample));
    }
    return;
  }
  retention.metric = config.get<std::string>("metric");
  if (retention.metric.empty()) {
    throw config.error("metric", fmt::format("expected a name as in metrics.jsonl, such as {}, "
                                             "found \"\"",
                                             kMetricExample));
  }
  retention.mode = read_more_is_better(config) ? Retention::Mode::kMax : Retention::Mode::kMin;
  retention.keep_best = own_key<int64_t>(config, "keep_best");
}

void read_keep_every(const Config& config, int64_t steps_per_epoch, Retention& retention) {
  const Trigger trigger(config, "keep_every", steps_per_epoch);
  if (trigger.depends_on_clock()) {
    throw no_minutes(config, "keep_every", "which checkpoints stay may not depend on the clock");
  }
  retention.keep_always = [trigger](int64_t before, int64_t step) {
    return step == 0 ? trigger.at_start() : trigger.is_due({.step = before}, {.step = step});
  };
}

}  // namespace

Retention read_retention(const Config& config, int64_t steps_per_epoch) {
  Retention retention;
  const Config checkpoints = config.at("checkpoints");
  // All keys are read in every config, so that none is reported as unknown.
  const bool has_last = checkpoints.has("keep_last");
  const bool has_every = checkpoints.has("keep_every");
  for (const char* key : {"metric", "mode", "keep_best"}) checkpoints.has(key);
  const Value* value = config.peek("checkpoints");
  if (value == nullptr || value->is_null()) return retention;
  if (!value->is_map()) {
    throw config.error("checkpoints", fmt::format("expected a map, such as {{keep_last: 2}}, found "
                                                  "{}",
                                                  value->describe()));
  }
  retention.keep_last = own_key<int64_t>(checkpoints, "keep_last");
  read_metric(checkpoints, retention);
  if (has_every) read_keep_every(checkpoints, steps_per_epoch, retention);
  const char* const idle = has_every                 ? "keep_every"
                           : retention.keep_best > 1 ? "keep_best"
                                                     : nullptr;
  if (idle != nullptr && !has_last) {
    throw checkpoints.error(idle,
                            "needs checkpoints/keep_last: without it every checkpoint is kept");
  }
  return retention;
}

}  // namespace stepop
