#pragma once

#include <string>

#include "runtime/tools/migrate/translated_config.h"

namespace stepop {

/// The config of an edflow project (at 317cb1b), as it would be here. `class_name` begins the names
/// of classes that are not there: `Denoiser`, `DenoiserNetwork`, `DenoiserData`, as the templates
/// of `stepop new` call them. Throws UsageError for what is no config.
TranslatedConfig translate_edflow(const Value& edflow, const std::string& class_name);

}  // namespace stepop
