#pragma once

#include <string>

#include "runtime/data/batch.h"
#include "runtime/train/networks/networks.h"

namespace stepop {

/// Explains an error of LibTorch about labels or indices, which names neither key nor example: says
/// which labels or indices of the batch are wrong, and what would help, as lines below `message`.
/// Empty for other messages. `split` is the batch's split.
std::string batch_mistake_text(const std::string& message, const Networks& networks,
                               const std::string& split, const Batch& batch);

/// The smallest and the greatest of each tensor of whole numbers, as a line to put below a message:
/// `the batch: "class" from 0 to 9`. Empty without such tensors. Waits for a GPU.
std::string integers_text(const Batch& batch);

}  // namespace stepop
