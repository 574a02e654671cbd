#pragma once

#include "runtime/tools/migrate/translated_config.h"

namespace stepop {

/// Translates `datasets` of a DL-Art-School config, a map: adds the datasets, and the keys that
/// belong to datasets there and to the run here, such as `batch_size`.
void translate_dlas_datasets(const Value& datasets, TranslatedConfig& result);

}  // namespace stepop
