#pragma once

#include "runtime/tools/migrate/translated_config.h"

namespace stepop {

/// Adds what `networks` and `steps` of a config of DL-Art-School become: as they stand, but for
/// what trains nothing there without a word, and is an error here.
void translate_dlas_steps(const Value& dlas, TranslatedConfig& result);

}  // namespace stepop
