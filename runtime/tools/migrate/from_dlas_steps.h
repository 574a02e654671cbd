#pragma once

#include "runtime/tools/migrate/translated_config.h"

namespace stepop {

/// Translates `networks` and `steps` of a DL-Art-School config: copies them, except for steps that
/// silently train nothing there, which are an error here.
void translate_dlas_steps(const Value& dlas, TranslatedConfig& result);

}  // namespace stepop
