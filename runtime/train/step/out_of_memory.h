#pragma once

#include <string>

#include "runtime/data/batch.h"
#include "runtime/train/iterator/context.h"

namespace stepop {

/// Whether the message of an exception is that of an allocator which has no memory left.
bool is_out_of_memory(const std::string& message);

/// Explains an exception that reports too little memory in an op of `split`: what uses the memory,
/// the names of the largest tensors, and what would help, as lines below the message. Empty for
/// other messages.
std::string out_of_memory_text(const std::string& message, const Context& context,
                               const std::string& split, const Batch& batch);

}  // namespace stepop
