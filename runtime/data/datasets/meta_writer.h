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
/// Examples are read one at a time.
///
/// The folder is there as a whole or not at all: it is `folder`.part while it is written. Throws
/// Error when `folder` is there, with the example's index for one that differs from those before
/// it, and what `interrupt` throws; `progress` gets the examples that are done.
void write_meta_folder(const Dataset& dataset, const std::string& folder,
                       const std::string& description, const InterruptCheck& interrupt,
                       const std::function<void(int64_t)>& progress);

}  // namespace stepop
