// An update within a step that is captured as a graph of the device.

#include <utility>

#include "runtime/train/optim/update.h"

namespace stepop {

Update::Left Update::take_left() {
  Left left{.losses = std::exchange(captured_losses_, {}), .gradients = {}};
  for (const auto& [name, parameter] : optimizer_->parameters()) {
    left.gradients.push_back(parameter.grad());
  }
  clear_gradients();
  return left;
}

void Update::apply(const Left& left) {
  for (const auto& loss : left.losses) {
    show_loss(loss);
    if (device_check_) device_check_->add_loss(loss);
  }
  for (size_t i = 0; i < left.gradients.size(); ++i) {
    optimizer_->parameters()[i].second.mutable_grad() = left.gradients[i];
  }
  auto cut = std::exchange(cut_, {});
  apply();
  cut_ = std::move(cut);
}

}  // namespace stepop
