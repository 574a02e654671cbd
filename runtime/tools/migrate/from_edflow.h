#pragma once

#include <string>

#include "runtime/tools/migrate/translated_config.h"

namespace stepop {

/// Translates the config of an edflow project (at 317cb1b). `class_name` is the prefix of missing
/// classes: `Denoiser`, `DenoiserNetwork`, `DenoiserData`, as in the templates of `stepop new`.
/// Throws UsageError for bad configs.
TranslatedConfig translate_edflow(const Value& edflow, const std::string& class_name);

}  // namespace stepop
