#pragma once

#include <c10/core/DeviceType.h>

#include <memory>

namespace stepop {

/// Work of a device that is recorded once and then launched as a whole: at::cuda::CUDAGraph, or
/// what another device has registered as at::GraphImplInterface.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;

  /// From now on what this thread, and its backward passes, add to the current stream is recorded
  /// and does not run. Tensors that it makes lie in memory of the graph, which is shared with
  /// `beside`, unless that is null: where the two are not launched in the order of their recording,
  /// what one has left in its tensors is read before the other is launched.
  virtual void begin(const DeviceGraph* beside) = 0;
  virtual void end() = 0;
  /// Runs the recorded work once, in the current stream. Random numbers continue.
  virtual void launch() = 0;
};

/// A graph that begins empty; null where LibTorch, or this build, has none for such devices.
std::unique_ptr<DeviceGraph> make_device_graph(c10::DeviceType type);

/// The same for CUDA, which LibTorch (2.13 to 2.15) does not register.
std::unique_ptr<DeviceGraph> make_cuda_graph();

}  // namespace stepop
