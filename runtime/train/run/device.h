#pragma once

#include <c10/core/Device.h>

#include <string>

#include "runtime/core/config/config.h"

namespace stepop {

/// `device: auto | cpu | cuda | cuda:1`; auto is the first GPU when there is one, and of several
/// processes on a machine the one of each process's number there. Throws UsageError for a device
/// that is not there.
c10::Device read_device(const Config& config, int local_rank = 0);

/// The most that `processes` and `--processes` start.
inline constexpr int64_t kMostProcesses = 256;

/// Settings of LibTorch; what the config leaves out stays as LibTorch has it. `num_threads` (at
/// most 1,024) and `onednn` change the speed. `deterministic: true` is
/// torch.use_deterministic_algorithms: the same bits each time, on a GPU as well, and an error for
/// an operation that cannot. Without `num_threads`, nor OMP_NUM_THREADS, the processes of a machine
/// share its cores. `flush_denormals: true` is torch.set_flush_denormal: numbers of less than
/// 1.2e-38 count as 0, with which many processors are much faster.
void apply_backend_settings(const Config& config, int local_processes = 1);

/// Waits until a GPU has done what it was given; the CPU always has.
void synchronize(const c10::Device& device);

/// `cpu, 2 threads, oneDNN on`, `cuda:0`.
std::string describe_device(const c10::Device& device);

}  // namespace stepop
