#include "runtime/optim/update.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_foreach_clamp_max.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/error.h"
#include "runtime/optim/names.h"

namespace stepop {
namespace {

std::optional<Scheduled> read_bound(const Config& config, std::string_view path) {
  if (!config.has(path)) return std::nullopt;
  const Scheduled bound(config, path);
  if (bound.at(0) > 0) return bound;
  throw config.error(path, fmt::format("expected a number above 0, found {}; leave the key out for "
                                       "no clipping",
                                       bound.at(0)));
}

void check_loss(const at::Tensor& loss) {
  if (!loss.defined()) throw Error("the loss is an undefined tensor");
  if (loss.numel() != 1) {
    throw Error(
        fmt::format("the loss has the shape [{}], an update needs one number: take its mean, "
                    "as in update.step(loss.mean())",
                    fmt::join(loss.sizes(), ", ")));
  }
  if (!loss.requires_grad()) {
    throw Error(
        "the loss depends on nothing that requires a gradient: compute it from the network's "
        "output, without detach() in between and where gradients are enabled (in step_op of "
        "the train split, or in train_op)");
  }
}

/// As torch.nn.utils.clip_grad_norm_; returns the norm before.
at::Tensor clip_norm(std::vector<at::Tensor>& gradients, double bound) {
  const at::Device device = gradients.front().device();
  std::vector<at::Tensor> norms = at::_foreach_norm(gradients, 2);
  for (auto& norm : norms) norm = norm.to(device, /*non_blocking=*/true);
  at::Tensor norm = at::linalg_vector_norm(at::stack(norms), 2);
  // Multiplying by 1 costs less than asking the device whether it is needed.
  const at::Tensor factor = norm.add(1e-6).reciprocal_().mul_(bound).clamp_max_(1);
  const bool is_one_device = std::all_of(gradients.begin(), gradients.end(),
                                         [&](const auto& g) { return g.device() == device; });
  if (is_one_device) {
    at::_foreach_mul_(gradients, factor);
  } else {
    for (auto& gradient : gradients) {
      gradient.mul_(factor.to(gradient.device(), /*non_blocking=*/true));
    }
  }
  return norm;
}

}  // namespace

Update::Update(const Config& config, NamedParameters parameters, const StepClock& clock)
    : optimizer_(optimizers().build(config, "", std::move(parameters))),
      clip_norm_(read_bound(config, "clip_norm")),
      clip_value_(read_bound(config, "clip_value")),
      clock_(&clock) {}

void Update::step(const at::Tensor& loss) {
  backward(loss);
  if (clock_->is_last_micro_batch()) apply();
}

void Update::backward(const at::Tensor& loss, bool retain_graph) {
  check_loss(loss);
  tensors_.clear();
  for (const auto& [name, parameter] : optimizer_->parameters()) {
    if (parameter.requires_grad()) tensors_.push_back(parameter);
  }
  if (tensors_.empty()) {
    throw Error("none of the update's parameters requires a gradient; they are: " +
                list_names(optimizer_->parameters()));
  }
  at::Tensor seed;
  if (clock_->micro_batches > 1) {
    seed = at::full_like(loss.detach(), 1.0 / static_cast<double>(clock_->micro_batches));
  }
  const auto inputs = is_alone_ ? std::nullopt : std::optional<at::TensorList>(tensors_);
  loss.backward(seed, retain_graph, /*create_graph=*/false, inputs);
  tensors_.clear();
}

void Update::apply() {
  const int64_t global_step = clock_->global_step;
  tensors_.clear();
  for (const auto& [name, parameter] : optimizer_->parameters()) {
    const at::Tensor& gradient = parameter.grad();
    if (gradient.defined()) tensors_.push_back(gradient);
  }
  if (tensors_.empty()) {
    throw Error(
        "an update without any gradient: the loss depends on none of its parameters, which "
        "are: " +
        list_names(optimizer_->parameters()));
  }
  if (clip_norm_ || clip_value_) clip(global_step);
  tensors_.clear();
  optimizer_->step(global_step);
  for (const auto& [name, parameter] : optimizer_->parameters()) parameter.mutable_grad().reset();
  lr_ = optimizer_->lr(global_step);
  ++count_;
}

void Update::clip(int64_t global_step) {
  const at::AutoDispatchBelowADInplaceOrView without_autograd;
  if (clip_value_) {
    const double bound = clip_value_->at(global_step);
    at::_foreach_clamp_min_(tensors_, -bound);
    at::_foreach_clamp_max_(tensors_, bound);
  }
  if (clip_norm_) grad_norm_ = clip_norm(tensors_, clip_norm_->at(global_step));
}

State Update::state() const {
  State state = optimizer_->state();
  state["count"] = at::scalar_tensor(count_, at::kLong);
  return state;
}

void Update::load_state(const State& state) {
  State of_optimizer = state;
  const auto count = of_optimizer.extract("count");
  if (!count || !count.mapped().defined() || count.mapped().numel() != 1) {
    throw Error("the state does not fit the update: \"count\", one number, is missing");
  }
  optimizer_->load_state(of_optimizer);
  count_ = count.mapped().item<int64_t>();
  lr_.reset();
}

}  // namespace stepop
