#pragma once

#include <optional>
#include <span>
#include <string>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/config/value.h"

namespace stepop {

/// Where settings are kept for trainings of this config on this machine, in the cache folder. Its
/// name depends on what a step costs: on the keys of model, data and iterator and on the batch
/// size, not on learning rates, nor on when something is logged or saved, nor on the settings
/// themselves; on processor, cores, GPUs, this build and LibTorch. `config` is resolved, its paths
/// as they were written. Throws Error where there is no cache folder.
std::string kept_settings_file(const Value& config);

/// The keys that say when and where something happens, and for how long, not what a step is: that
/// name does not depend on them.
std::span<const char* const> keys_that_cost_nothing();

/// The settings in a file that `stepop tune` wrote; nothing where there is none. Other keys are
/// left out. Throws UsageError for bad YAML.
std::optional<OrderedMap<Value>> read_tuned(const std::string& file);

/// The machine's facts in a line, without its kernel.
std::string machine_text();

}  // namespace stepop
