#pragma once

#include <string>

#include "runtime/tools/migrate/translated_config.h"

namespace stepop {

/// Translates `datasets` of a DL-Art-School config, a map: adds the datasets, and the keys that
/// belong to datasets there and to the run here, such as `batch_size`.
void translate_dlas_datasets(const Value& datasets, TranslatedConfig& result);

/// Translates one dataset, whose places are `there` and `here`: `datasets/val`.
void translate_dlas_dataset(const std::string& there, const std::string& here, const Value& dataset,
                            TranslatedConfig& result);

}  // namespace stepop
