#pragma once

#include "runtime/core/config/config.h"
#include "runtime/tools/migrate/translated_config.h"

namespace stepop {

/// Turns a config of DL-Art-School (at f31a333) into the config of an ExtensibleTrainer: networks
/// and steps stay the same, the rest gets the keys of this program. Throws UsageError for any other
/// config.
TranslatedConfig translate_dlas(const Value& dlas);

/// Throws UsageError, with the translation command, if a config of a run looks like DL-Art-School.
void refuse_dlas(const Config& config);

}  // namespace stepop
