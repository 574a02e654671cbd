#include "runtime/train/distributed/device_backend.h"

#include <ATen/detail/CUDAHooksInterface.h>

#include <filesystem>

#include "runtime/core/system/optional_library.h"
#include "runtime/core/system/stepop_library.h"

namespace stepop {

std::map<std::string, DeviceBackend>& device_backends() {
  static std::map<std::string, DeviceBackend> all;
  return all;
}

std::string load_nccl() {
  if (device_backends().contains("nccl")) return {};
  if (!at::CUDAHooksRegistry()->Has("CUDAHooks")) {
    return "nccl needs a LibTorch with CUDA, and this one has none; use gloo";
  }
  const auto file = stepop_library().replace_filename("libstepop_nccl.so");
  if (!std::filesystem::exists(file)) {
    return "nccl is not in this build, which did not find the headers of NCCL and CUDA (see "
           "cmake/README.md); use gloo";
  }
  const OptionalLibrary loaded(file.string(), "distributed/backend: nccl");
  return {};
}

bool is_device_type(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
    case at::kDouble:
    case at::kHalf:
    case at::kBFloat16:
    case at::kInt:
    case at::kLong:
      return true;
    default:
      return false;
  }
}

}  // namespace stepop
