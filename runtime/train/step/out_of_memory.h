#pragma once

#include <string>

#include "runtime/data/batch.h"
#include "runtime/train/iterator/context.h"

namespace stepop {

/// For the message of an exception by which an op of `split` got no memory: what has it, with the
/// largest tensors by name, and what would help, as lines below the message. Empty for other
/// messages.
std::string out_of_memory_text(const std::string& message, const Context& context,
                               const std::string& split, const Batch& batch);

}  // namespace stepop
