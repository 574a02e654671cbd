// An update within a step that is captured as a graph of the device.

#include <utility>

#include "runtime/train/optim/update.h"

namespace stepop {

bool Update::is_repeatable() const {
  const auto is_fixed = [](const std::optional<Scheduled>& bound) {
    return !bound || bound->is_fixed();
  };
  return optimizer_->is_repeatable() && is_fixed(clip_norm_) && is_fixed(clip_value_) &&
         (on_nan_ == OnNan::kIgnore || !optimizer_->bad_rate(clock_->global_step)) &&
         clears_at_.empty() && (device_check_ || on_nan_ == OnNan::kIgnore) && world_ == nullptr &&
         watches_of_gradients_.empty();
}

Update::Captured Update::take_captured() {
  Captured captured;
  captured.losses = std::exchange(captured_losses_, {});
  for (const auto& [name, parameter] : optimizer_->parameters()) {
    captured.gradients.push_back(parameter.grad());
  }
  clear_gradients();
  return captured;
}

Update::Captured Update::capture_apply() {
  Captured captured;
  captured.losses = std::exchange(captured_losses_, {});
  for (const auto& [name, parameter] : optimizer_->parameters()) {
    if (parameter.grad().defined()) captured.changed.push_back(parameter);
  }
  if (device_check_) {
    for (const auto& loss : captured.losses) device_check_->add_loss(loss);
  }
  auto in_graph = std::exchange(in_graph_, {});
  is_captured_ = true;
  apply();
  is_captured_ = false;
  in_graph_ = std::move(in_graph);
  // Each launch counts, this one too.
  --count_;
  if (device_check_) device_check_->forget_last();
  captured.grad_norm = grad_norm_;
  return captured;
}

void Update::apply(const Captured& captured) {
  for (const auto& loss : captured.losses) show_loss(loss);
  if (captured.gradients.empty()) {
    if (device_check_) device_check_->note(clock_->global_step);
    grad_norm_ = captured.grad_norm;
    lr_step_ = clock_->global_step;
    ++count_;
    return Optimizer::mark_changed(captured.changed);
  }
  if (device_check_) {
    for (const auto& loss : captured.losses) device_check_->add_loss(loss);
  }
  for (size_t i = 0; i < captured.gradients.size(); ++i) {
    optimizer_->parameters()[i].second.mutable_grad() = captured.gradients[i];
  }
  auto in_graph = std::exchange(in_graph_, {});
  apply();
  in_graph_ = std::move(in_graph);
}

}  // namespace stepop
