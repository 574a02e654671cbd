#pragma once

#include <c10/core/Device.h>

#include <string>

#include "runtime/config/config.h"

namespace stepop {

/// `device: auto | cpu | cuda | cuda:1`; auto is the first GPU when there is one. Throws UsageError
/// for a device that is not there.
c10::Device read_device(const Config& config);

/// Settings of LibTorch, each by default its own choice: `num_threads` and `onednn` change what a
/// step costs; `deterministic: true` asks for algorithms that give the same bits each time, on a
/// GPU as well, and for an error where an operation has none (torch.use_deterministic_algorithms).
void apply_backend_settings(const Config& config);

/// Waits until a GPU has done what it was given; the CPU always has.
void synchronize(const c10::Device& device);

/// `cpu, 2 threads, oneDNN on`, `cuda:0`.
std::string describe_device(const c10::Device& device);

}  // namespace stepop
