#pragma once

#include <c10/core/Device.h>

#include <optional>

namespace stepop {

/// Bytes of a GPU's memory that LibTorch has in this process.
struct DeviceMemory {
  double in_tensors = 0;
  double most_in_tensors = 0;  ///< At once.
  double most_taken = 0;       ///< From the driver, with what is kept for later tensors.
};

/// Nothing for the CPU, and where LibTorch does not say.
std::optional<DeviceMemory> device_memory(const c10::Device& device);

/// Gives back what LibTorch keeps for later tensors. After a batch that did not fit, libraries and
/// the driver would find no memory.
void give_back_memory(const c10::Device& device);

}  // namespace stepop
