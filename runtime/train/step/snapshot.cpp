#include "runtime/train/step/snapshot.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <string_view>

namespace stepop {

KeptBuffers::KeptBuffers(const Context& context) {
  for (const auto& name : context.networks.names()) keep(*context.networks.get(name));
  for (const auto* module : context.tracker.modules()) keep(*module);
}

void KeptBuffers::keep(const torch::nn::Module& module) {
  for (const at::Tensor& buffer : module.buffers()) {
    if (!buffer.defined()) continue;
    kept_.push_back({buffer, buffer.clone(), static_cast<int64_t>(buffer._version())});
  }
}

KeptBuffers::~KeptBuffers() {
  const at::NoGradGuard no_grad;
  try {
    for (const auto& kept : kept_) restore(kept);
  } catch (const std::exception&) {  // a GPU has failed, which an error tells
  }
}

void KeptBuffers::restore(const Kept& kept) {
  const auto& [buffer, values, version] = kept;
  if (static_cast<int64_t>(buffer._version()) != version) {
    buffer.copy_(values);
    return;
  }
  // batch_norm changes its statistics without a new version. An unchanged buffer keeps its version,
  // because a graph may need it.
  if (!buffer.is_floating_point()) return;
  if (!buffer.is_cpu()) {  // a comparison would wait for the device
    buffer.variable_data().copy_(values);
  } else if (!at::equal(buffer, values)) {
    buffer.copy_(values);
  }
}

Snapshot::Snapshot(const Context& context)
    : context_(context), buffers_(context.networks.copy_buffers()) {
  const auto networks = context.networks.names();
  const auto is_of_network = [&](std::string_view name) {
    // The averages of a network's weights, and their state.
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
