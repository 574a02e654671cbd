#pragma once

#include <c10/core/Device.h>

#include <string>

#include "runtime/config/config.h"

namespace stepop {

/// `device: auto | cpu | cuda | cuda:1`; auto is the first GPU when there is one. Throws UsageError
/// for a device that is not there.
c10::Device read_device(const Config& config);

/// `num_threads` and `onednn`: settings of LibTorch that change what a step costs. Both default to
/// LibTorch's own choice.
void apply_backend_settings(const Config& config);

/// Waits until a GPU has done what it was given; the CPU always has.
void synchronize(const c10::Device& device);

/// `cpu, 2 threads, oneDNN on`, `cuda:0`.
std::string describe_device(const c10::Device& device);

}  // namespace stepop
