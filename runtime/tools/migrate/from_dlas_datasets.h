#pragma once

#include "runtime/tools/migrate/translated_config.h"

namespace stepop {

/// Adds what `datasets` of a config of DL-Art-School, a map, becomes: datasets and the keys that
/// are of them there and of the run here, such as `batch_size`.
void translate_dlas_datasets(const Value& datasets, TranslatedConfig& result);

}  // namespace stepop
