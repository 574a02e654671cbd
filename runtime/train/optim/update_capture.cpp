// An update within a step that is captured as a graph of the device.

#include <utility>

#include "runtime/train/optim/update.h"

namespace stepop {

Update::Captured Update::take_captured() {
  Captured captured{.losses = std::exchange(captured_losses_, {}), .gradients = {}};
  for (const auto& [name, parameter] : optimizer_->parameters()) {
    captured.gradients.push_back(parameter.grad());
  }
  clear_gradients();
  return captured;
}

void Update::apply(const Captured& captured) {
  for (const auto& loss : captured.losses) {
    show_loss(loss);
    if (device_check_) device_check_->add_loss(loss);
  }
  for (size_t i = 0; i < captured.gradients.size(); ++i) {
    optimizer_->parameters()[i].second.mutable_grad() = captured.gradients[i];
  }
  auto end_graph = std::exchange(end_graph_, {});
  apply();
  end_graph_ = std::move(end_graph);
}

}  // namespace stepop
