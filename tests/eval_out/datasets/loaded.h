#pragma once

#include <string>

#include "runtime/data/loader.h"

namespace stepop {

/// Every byte of two shuffled epochs of a dataset, loaded by so many workers.
inline std::string loaded_bytes(const Dataset& dataset, int64_t workers) {
  const Config config;
  const BatchOrder order("datasets/train",
                         samplers().factory("shuffle", config, "")(config, dataset, 5),
                         {.batch_size = 2, .seed = 5});
  const int64_t batches = 2 * order.batches_per_epoch();
  Loader loader(dataset, order, {.workers = workers, .end_batch = batches});
  std::string bytes;
  while (loader.has_next()) {
    const Batch batch = loader.next();
    for (const auto& [key, value] : batch.tensors()) {
      bytes.append(key).append(static_cast<const char*>(value.const_data_ptr()), value.nbytes());
    }
    for (const auto& [key, texts] : batch.texts()) {
      bytes += key;
      for (const auto& text : texts) bytes.append(text).append(1, '\0');
    }
  }
  return bytes;
}

}  // namespace stepop
