#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "eval_out/eval_outputs.h"

namespace stepop {

/// One process's results for a batch of an evaluation, sent to the process that writes the file.
struct EvalMessage {
  EvalOutputs outputs;
  std::vector<int64_t> indices;
};

std::string to_bytes(const EvalMessage& message);
EvalMessage eval_message_from_bytes(std::string_view bytes);

}  // namespace stepop
