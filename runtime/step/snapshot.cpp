#include "runtime/step/snapshot.h"

#include <fmt/format.h>

#include <algorithm>

namespace stepop {

Snapshot::Snapshot(const Context& context)
    : context_(context), buffers_(context.networks.copy_buffers()) {
  const auto networks = context.networks.names();
  for (const auto& name : context.tracker.names()) {
    const bool is_network = std::find(networks.begin(), networks.end(), name) != networks.end();
    if (is_network || context.updates.contains(name)) continue;
    for (const auto& [key, tensor] : context.tracker.save(name)) {
      tensors_.emplace(fmt::format("{}.{}", name, key), tensor.clone());
    }
    names_.push_back(name);
  }
}

void Snapshot::restore() const {
  context_.networks.restore_buffers(buffers_);
  for (const auto& name : names_) context_.tracker.load(name, tensors_);
}

}  // namespace stepop
