// Steps of optimizers that compute the loss several times.

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/train/optim/update.h"

namespace stepop {

/// Throws Error, with what would help, for what needs the gradients of several backward passes, or
/// changes them behind the loss's back.
void Update::check_can_evaluate_again() const {
  const auto refuse = [&](const std::string& what) {
    throw Error(
        fmt::format("{}: it computes the loss several times in a step, which {}", name_, what));
  };
  if (world_ != nullptr) refuse("several processes do not: start one");
  if (clock_->micro_batches != 1) refuse("accumulate does not: give it a larger batch_size");
  if (scale_) refuse("float16 does not: precision: bfloat16 or float32");
  if (in_graph_) refuse("a graph of the device cannot hold: leave cuda_graph out");
}

void Update::step(const WeightedMean& loss, const std::function<WeightedMean()>& again) {
  if (!optimizer_->evaluates_again()) return step(loss);
  check_can_evaluate_again();
  struct Guard {
    Update& update;
    ~Guard() { update.again_.reset(); }
  };
  const Guard guard{*this};
  again_.emplace(loss.value().item<double>(), again);
  step(loss);
}

/// The loss and the gradients with the weights of this moment. Throws NonFinite.
double Update::evaluate(const std::function<WeightedMean()>& again) {
  const at::AutoGradMode with_gradients(true);
  for (const auto& [name, parameter] : optimizer_->parameters()) parameter.mutable_grad().reset();
  const WeightedMean loss = again();
  const auto value = loss.value().item<double>();
  const int64_t step = clock_->global_step;
  const bool is_checked = on_nan_ != OnNan::kIgnore;
  if (is_checked && !std::isfinite(value)) {
    throw NonFinite(name_, "the loss of a trial", value, step);
  }
  pass_back(loss.value(), {}, /*retain_graph=*/false, /*is_only_one=*/false);
  if (!is_checked) return value;
  for (const auto& [name, parameter] : optimizer_->parameters()) {
    const at::Tensor& gradient = parameter.grad();
    if (!gradient.defined() || is_finite(gradient)) continue;
    throw NonFinite(name_, "the gradient of " + name + " in a trial", first_non_finite(gradient),
                    step);
  }
  return value;
}

/// False when the update is left out, and nothing has changed.
bool Update::step_optimizer(int64_t global_step) {
  if (!again_) {
    optimizer_->step(global_step, found_inf_, is_captured_);
    return true;
  }
  if (found_inf_.defined() && found_inf_.item<float>() != 0) return false;
  try {
    optimizer_->step(global_step, again_->first, [this] { return evaluate(again_->second); });
  } catch (const NonFinite& why) {
    leave_out(why);
    return false;
  }
  return true;
}

}  // namespace stepop
