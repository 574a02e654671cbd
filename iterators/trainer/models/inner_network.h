#pragma once

#include <memory>
#include <string>
#include <typeinfo>

#include "runtime/core/base/text.h"
#include "runtime/core/components/registry.h"
#include "runtime/train/networks/network.h"

namespace stepop {

/// The network that a model's own part of the config names at `key`: `network: {class: DiT}`.
/// Throws UsageError unless the network is a T.
template <class T>
std::shared_ptr<T> build_inner(const Config& params, const std::string& key) {
  auto network = std::dynamic_pointer_cast<T>(models().build(params, key));
  if (network) return network;
  throw params.error(key, "expected a network that is a " + demangled(typeid(T).name()) +
                              ", found " + read_component(params, key).name);
}

}  // namespace stepop
