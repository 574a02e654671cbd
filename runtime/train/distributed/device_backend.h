#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <string>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "runtime/train/distributed/place.h"

namespace stepop {

/// What carries tensors between devices without the host's memory, such as NCCL. Its operations are
/// those of c10d's ProcessGroupNCCL: each begins behind the current stream's work and lets the host
/// continue, and `wait` of it makes the current stream wait.
struct DeviceBackend {
  using Pointer = c10::intrusive_ptr<c10d::Backend>;

  c10::DeviceType device;
  c10d::ProcessGroup::BackendType type;
  /// Connects the processes, which all call it. The store is the backend's own. What it gives has
  /// no time limit and ends no process: Link watches its operations.
  std::function<Pointer(const c10::intrusive_ptr<c10d::Store>& store, const Place& place,
                        c10::Device device)>
      connect;
  /// A name of the device that no other device of its machine has.
  std::function<std::string(c10::Device device)> identity;
};

/// By the value of `distributed/backend`, without `gloo`.
std::map<std::string, DeviceBackend>& device_backends();
/// Loads NCCL, which is a library of its own that needs a LibTorch with CUDA, and adds it to the
/// backends. Returns what is missing, or nothing.
std::string load_nccl();

/// Whether the backends take tensors of this type: NCCL has no short integers, for example.
bool is_device_type(at::ScalarType type);

}  // namespace stepop
