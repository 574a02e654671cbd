#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "iterators/extensible/step/network_hooks.h"
#include "runtime/train/networks/networks.h"

namespace stepop {
class Update;
}

namespace stepop::extensible {

/// The networks of a training that have hooks.
class HookedNetworks {
 public:
  explicit HookedNetworks(const Networks& networks);

  void call(void (NetworkHooks::*hook)(int64_t), int64_t iteration) const;
  /// Calls `add` with the norm of each group's gradients in the next update of that network.
  void watch_norms(const std::string& network, Update& update,
                   const std::function<void(const std::string&, const at::Tensor&)>& add) const;
  void add_debug_values(int64_t iteration, Logs& logs) const;
  void add_pictures(int64_t iteration, Logs& logs) const;

 private:
  std::vector<std::pair<std::string, NetworkHooks*>> hooked_;
};

}  // namespace stepop::extensible
