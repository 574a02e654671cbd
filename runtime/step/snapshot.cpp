#include "runtime/step/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace stepop {

Snapshot::Snapshot(const Context& context)
    : context_(context), buffers_(context.networks.copy_buffers()) {
  const auto networks = context.networks.names();
  const auto is_of_network = [&](std::string_view name) {
    // The averages of its weights, and what there is to know of them.
    if (name.starts_with("ema_") || name.starts_with("swa_")) name.remove_prefix(4);
    if (name == "swa") return true;
    return std::find(networks.begin(), networks.end(), name) != networks.end();
  };
  for (const auto& name : context.tracker.names()) {
    if (is_of_network(name) || context.updates.contains(name)) continue;
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
