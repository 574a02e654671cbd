#pragma once

#include <optional>
#include <string>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/value/value.h"

namespace stepop {

/// The file in the cache folder that keeps settings for trainings of this config on this machine.
/// Its name depends on everything that affects the cost of a step: the keys of model, data and
/// iterator, the batch size, processor, cores, GPUs, this build and LibTorch. It does not depend on
/// learning rates, times of logging and saving, and the settings themselves. `config` is resolved,
/// with paths as written. Throws Error without a cache folder.
std::string kept_settings_file(const Value& config);

/// The settings in a file of `stepop tune`; nothing if the file is missing. Other keys are left
/// out. Throws UsageError for bad YAML.
std::optional<OrderedMap<Value>> read_tuned(const std::string& file);

/// The facts about the machine in one line, without its kernel.
std::string machine_text();

}  // namespace stepop
