#pragma once

#include <c10/core/Device.h>

#include <optional>
#include <string>

#include "runtime/core/config/config.h"

namespace stepop {

/// Reads `device: auto | cpu | cuda | cuda:1`, or the name of another accelerator that this
/// LibTorch knows, such as `xpu`. `auto` is a GPU of CUDA, if there is one. Without a number it is
/// the first one; of several processes on a machine, each gets the one with its local number, in
/// turn where there are fewer. Throws UsageError for a
/// device that does not exist.
c10::Device read_device(const Config& config, int local_rank = 0);

/// The largest number of processes that `processes` and `--processes` start.
inline constexpr int64_t kMostProcesses = 256;

/// The key `onednn`; nothing for `auto`, the default. Throws UsageError for another value.
std::optional<bool> read_onednn(const Config& config);

/// Settings of LibTorch; keys that are missing leave LibTorch's defaults. `num_threads` (at most
/// 1,024) and `onednn` (`auto`: on, until a training has counted its convolutions; see
/// checks/convolution_count.h) change the speed. `deterministic: true` is
/// torch.use_deterministic_algorithms: the same bits each time, also on a GPU, and an error for an
/// operation without a deterministic version. Without `num_threads` and OMP_NUM_THREADS, the
/// processes of a machine share its cores. `flush_denormals: true` is torch.set_flush_denormal:
/// numbers below 1.2e-38 count as 0, which makes many processors much faster.
/// `matmul_precision` and `cudnn_benchmark` are torch.set_float32_matmul_precision
/// and torch.backends.cudnn.benchmark.
void apply_backend_settings(const Config& config, int local_processes = 1);

/// Waits until a device has finished its work; does nothing on the CPU.
void synchronize(const c10::Device& device);

/// `cpu, 2 threads, oneDNN on`, `cuda:0`.
std::string describe_device(const c10::Device& device);

}  // namespace stepop
