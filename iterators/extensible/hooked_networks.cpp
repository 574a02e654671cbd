#include "iterators/extensible/hooked_networks.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <torch/nn/module.h>

#include "runtime/train/optim/update.h"

namespace stepop::extensible {

HookedNetworks::HookedNetworks(const Networks& networks) {
  for (const auto& name : networks.names()) {
    auto* const hooks = dynamic_cast<NetworkHooks*>(networks.get(name).get());
    if (hooks != nullptr) hooked_.emplace_back(name, hooks);
  }
}

void HookedNetworks::call(void (NetworkHooks::*hook)(int64_t), int64_t iteration) const {
  const at::NoGradGuard no_grad;
  for (const auto& [name, hooks] : hooked_) (hooks->*hook)(iteration);
}

void HookedNetworks::watch_norms(
    const std::string& network, Update& update,
    const std::function<void(const std::string&, const at::Tensor&)>& add) const {
  for (const auto& [name, hooks] : hooked_) {
    if (name != network) continue;
    auto groups = hooks->get_grad_norm_parameter_groups();
    if (groups.empty()) return;
    update.watch_gradients(this, [groups = std::move(groups), add](const NamedParameters&) {
      for (const auto& [group, parameters] : groups) {
        std::vector<at::Tensor> gradients;
        for (const auto& parameter : parameters) {
          if (parameter.grad().defined()) gradients.push_back(parameter.grad());
        }
        if (gradients.empty()) continue;
        add(group, at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients, 2))));
      }
    });
  }
}

void HookedNetworks::add_debug_values(int64_t iteration, Logs& logs) const {
  const at::NoGradGuard no_grad;
  for (const auto& [network, hooks] : hooked_) {
    for (const auto& [name, value] : hooks->get_debug_values(iteration)) {
      logs.scalars.set(network + "_" + name, value);
    }
  }
}

void HookedNetworks::add_pictures(int64_t iteration, Logs& logs) const {
  const at::NoGradGuard no_grad;
  for (const auto& [network, hooks] : hooked_) {
    for (const auto& [name, picture] : hooks->visual_dbg(iteration)) {
      logs.images.set(network + "_" + name, picture);
    }
  }
}

}  // namespace stepop::extensible
