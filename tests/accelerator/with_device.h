#pragma once

#include <fmt/format.h>

#include <string>

#include "runtime/train/checkpoint/checkpoint.h"
#include "tests/accelerator/accelerator.h"
#include "tests/cli/digits_run.h"

namespace stepop::accelerator {

/// `stepop` of a line then has the device, and draws the random numbers of the CPU.
inline const std::string kWithDevice =
    fmt::format("export OMP_NUM_THREADS=1 {}=1; stepop() {{ LD_PRELOAD=" STEPOP_BINARY_DIR
                "/tests/libstepop_accelerator.so '" STEPOP_BINARY_DIR "/stepop' \"$@\"; }}\n",
                kSharesRandom);

/// The last checkpoint without the generators of devices, which a training on the CPU lacks.
inline State last_checkpoint(const ScratchFolder& folder, const std::string& logs) {
  const std::string checkpoints = folder.path(only_run(folder, logs)) + "/train/checkpoints";
  State state =
      load_checkpoint(checkpoints + "/" + checkpoint_name(checkpoint_steps(checkpoints).back()))
          .tensors;
  std::erase_if(state, [](const auto& entry) { return entry.first.ends_with("random.cuda"); });
  return state;
}

}  // namespace stepop::accelerator
