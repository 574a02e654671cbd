// NCCL through c10d: libstepop_nccl.so, which libstepop.so loads, so that it needs no CUDA itself.
// Left out of builds whose LibTorch has no CUDA, and where the headers of NCCL or CUDA are missing.

#include <ATen/cuda/CUDAContext.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdlib>
#include <string>

#define USE_C10D_NCCL  // Without it the header is empty.
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "runtime/train/distributed/device_backend.h"

namespace stepop {
namespace {

/// Ends its connections, for which it would else only ask in its log.
class Nccl final : public c10d::ProcessGroupNCCL {
 public:
  using ProcessGroupNCCL::ProcessGroupNCCL;
  ~Nccl() override { shutdown(); }
};

DeviceBackend::Pointer connect_nccl(const c10::intrusive_ptr<c10d::Store>& store,
                                    const Place& place, c10::Device /*device*/) {
  constexpr std::chrono::hours kLongest(24 * 365);
  // c10d's own watch would end the process in its thread, without a reason. An operation that
  // cannot end is not aborted either: what it left would reach the weights. The process ends.
  ::setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0", /*overwrite=*/0);
  ::setenv("TORCH_NCCL_ENABLE_MONITORING", "0", /*overwrite=*/0);
  const auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = kLongest;
  return c10::make_intrusive<Nccl>(store, place.rank, place.size, options);
}

std::string identity_of_gpu(c10::Device device) {
  const char(&bytes)[16] = at::cuda::getDeviceProperties(device.index())->uuid.bytes;
  return fmt::format("{:x}", fmt::join(bytes, ""));
}

[[maybe_unused]] const bool is_registered = [] {
  device_backends()["nccl"] = {.device = c10::kCUDA,
                               .type = c10d::ProcessGroup::BackendType::NCCL,
                               .connect = connect_nccl,
                               .identity = identity_of_gpu};
  return true;
}();

}  // namespace
}  // namespace stepop
