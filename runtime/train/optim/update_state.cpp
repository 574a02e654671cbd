// The state of an update in checkpoints.

#include <ATen/ops/empty_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/core/base/error.h"
#include "runtime/train/optim/update.h"

namespace stepop {
namespace {

constexpr const char* kGradient = ".grad";
constexpr const char* kSpoilt = "spoilt";
constexpr const char* kClearedUntil = "cleared_until";
constexpr const char* kLrStep = "lr_step";

}  // namespace

State Update::state() const {
  const int64_t left_out = device_check_ ? device_check_->read().left_out : 0;
  State state = optimizer_->state();
  state["count"] = at::scalar_tensor(count_ - left_out, at::kLong);
  state["skipped"] =
      at::scalar_tensor(skipped_ + (on_nan_ == OnNan::kSkip || scale_ ? left_out : 0), at::kLong);
  if (scale_) scale_->save(state);
  weights_.save(state);
  if (!clears_at_.empty() && cleared_until_) {
    state[kClearedUntil] = at::scalar_tensor(*cleared_until_, at::kLong);
  }
  if (lr_step_) state[kLrStep] = at::scalar_tensor(*lr_step_, at::kLong);
  if (has_non_finite_) state[kSpoilt] = at::scalar_tensor(true, at::kBool);
  if (!is_pending_) return state;
  for (const auto& [name, parameter] : optimizer_->parameters()) {
    if (parameter.grad().defined()) state[name + kGradient] = parameter.grad();
  }
  return state;
}

/// Loads the gradients of `pending`, whose names and shapes fit, as gradients that wait for
/// `apply`.
void Update::load_pending(const State& pending) {
  clear_gradients();
  for (const auto& [name, parameter] : optimizer_->parameters()) {
    const auto found = pending.find(name + kGradient);
    if (found == pending.end()) continue;
    parameter.mutable_grad() = at::empty_like(parameter.detach()).copy_(found->second);
    is_pending_ = true;
  }
}

void Update::load_state(const State& state) {
  State of_optimizer = state;
  const auto count = of_optimizer.extract("count");
  if (!count || !count.mapped().defined() || count.mapped().numel() != 1) {
    throw Error("the state does not fit the update: \"count\", one number, is missing");
  }
  const auto skipped = of_optimizer.extract("skipped");  // older checkpoints have none
  const auto spoilt = of_optimizer.extract(kSpoilt);
  const auto cleared = of_optimizer.extract(kClearedUntil);
  const auto lr_step = of_optimizer.extract(kLrStep);  // the same here
  State pending;
  for (const auto& [name, parameter] : optimizer_->parameters()) {
    auto gradient = of_optimizer.extract(name + kGradient);
    if (!gradient) continue;
    if (!gradient.mapped().defined() || gradient.mapped().sizes() != parameter.sizes()) {
      throw Error(
          fmt::format("the state does not fit the update: \"{}{}\" is not of the shape [{}]", name,
                      kGradient, fmt::join(parameter.sizes(), ", ")));
    }
    pending.insert(std::move(gradient));
  }
  const State of_scale = LossScale::take(of_optimizer);
  const State of_weights = MeanWeights::take(of_optimizer);
  optimizer_->load_state(of_optimizer);
  if (scale_) scale_->load(of_scale);
  load_pending(pending);
  weights_.load(of_weights);
  has_non_finite_ = static_cast<bool>(spoilt);
  count_ = count.mapped().item<int64_t>();
  skipped_ = skipped ? skipped.mapped().item<int64_t>() : 0;
  cleared_until_.reset();
  if (cleared) cleared_until_ = cleared.mapped().item<int64_t>();
  lr_step_.reset();
  if (lr_step) lr_step_ = lr_step.mapped().item<int64_t>();
}

}  // namespace stepop
