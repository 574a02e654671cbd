#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/core/base/interrupt.h"
#include "runtime/data/dataset.h"

namespace stepop {

/// Writes all examples of a dataset as a folder with a meta.yaml, which Meta here and edflow's
/// MetaDataset read: images, float [1 or 3, H, W] in [-1, 1], as PNG files of 8 bits with their
/// paths in a label; other numbers, of one shape and type in all examples, and texts as labels.
/// Examples are read one at a time. `class_names` by key go into the meta.yaml, from where Meta
/// here takes them.
///
/// The folder appears as a whole or not at all: its name is `folder`.part while it is written.
/// Throws Error when `folder` exists. An example that differs from the examples before it is an
/// Error with its index. Exceptions from `interrupt` are passed on. `progress` gets the number of
/// examples written.
void write_meta_folder(const Dataset& dataset, const std::string& folder,
                       const std::string& description,
                       const OrderedMap<std::vector<std::string>>& class_names,
                       const InterruptCheck& interrupt,
                       const std::function<void(int64_t)>& progress);

}  // namespace stepop
