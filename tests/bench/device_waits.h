#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace stepop::bench {

/// Counts, in this thread and for its lifetime, how often the host waits for a GPU: LibTorch tells
/// of each copy to the host, each `item()` and each synchronisation, as
/// torch.cuda.set_sync_debug_mode("warn") does. Knows nothing when LibTorch has no CUDA.
class DeviceWaits {
 public:
  DeviceWaits();
  ~DeviceWaits();
  DeviceWaits(const DeviceWaits&) = delete;
  DeviceWaits& operator=(const DeviceWaits&) = delete;

  /// The waits since the last call, by the ops in which they were, outermost first:
  /// `aten::item > aten::_local_scalar_dense`.
  std::map<std::string, int64_t> take();

 private:
  class Handler;

  Handler* handler_ = nullptr;
  uint64_t callback_ = 0;
};

/// `0`, or `3: 2 x aten::item, 1 x aten::copy_`.
std::string waits_text(const std::map<std::string, int64_t>& waits);

}  // namespace stepop::bench
