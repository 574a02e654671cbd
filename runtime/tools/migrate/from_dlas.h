#pragma once

#include "runtime/core/config/config.h"
#include "runtime/tools/migrate/translated_config.h"

namespace stepop {

/// A config of DL-Art-School (at f31a333) as one of an ExtensibleTrainer: networks and steps as
/// they stand, the rest with the keys of this program. Throws UsageError for what is no such
/// config.
TranslatedConfig translate_dlas(const Value& dlas);

/// Throws UsageError that names the translation when a config that is to be run looks like one.
void refuse_dlas(const Config& config);

}  // namespace stepop
