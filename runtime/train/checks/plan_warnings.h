#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/train/iterator/context.h"
#include "runtime/train/optim/metric_schedule.h"
#include "runtime/train/optim/schedule.h"
#include "runtime/train/when/settings.h"

namespace stepop {

/// What of a config comes to nothing in this training, or is most likely not meant: times after its
/// end, averages that never begin or never forget their beginning, a learning rate that rises to
/// the end or hardly falls, a schedule that ends long before the training does or begins after it,
/// a plateau that is longer than it, the wrong `mode` of a metric, more processes than examples,
/// more threads than processors; and what `optimizer_warnings` and `data_warnings` say. A text
/// each, with the place in the config. `freeze_begins`: the step from which each rule of `freeze`
/// holds.
std::vector<std::string> plan_warnings(const Settings& settings, const Context& context,
                                       const std::vector<int64_t>& freeze_begins,
                                       const std::vector<BuiltSchedule>& schedules,
                                       const MetricSchedules& metric_schedules);

}  // namespace stepop
