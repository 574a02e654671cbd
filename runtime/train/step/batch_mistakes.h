#pragma once

#include <string>

#include "runtime/data/batch.h"
#include "runtime/train/networks/networks.h"

namespace stepop {

/// For LibTorch's complaint of labels or indices, which names neither key nor example: which of
/// the batch they are, and what would help, as lines below `message`. Empty for other messages.
/// `split` is the one that the batch is of.
std::string batch_mistake_text(const std::string& message, const Networks& networks,
                               const std::string& split, const Batch& batch);

}  // namespace stepop
