// The gradients of an update: their norm, clipping, and what is not finite.

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_foreach_clamp_max.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"
#include "runtime/train/distributed/world.h"
#include "runtime/train/optim/pieces.h"
#include "runtime/train/optim/update.h"

namespace stepop {
namespace {

/// Like torch.nn.utils.clip_grad_norm_.
void scale_to_norm(std::vector<at::Tensor>& gradients, const at::Tensor& norm, double bound) {
  // Multiplying by 1 is cheaper than asking the device whether scaling is necessary.
  const at::Tensor factor = norm.add(1e-6).reciprocal_().mul_(bound).clamp_max_(1);
  const bool is_one_device =
      std::all_of(gradients.begin(), gradients.end(),
                  [&](const auto& gradient) { return gradient.device() == norm.device(); });
  if (is_one_device) {
    at::_foreach_mul_(gradients, factor);
  } else {
    for (auto& gradient : gradients) gradient.mul_(factor.to(gradient.device()));
  }
}

/// Names the gradients that are not finite; their norm if all are finite.
NonFinite describe_non_finite(const std::string& update, const NamedParameters& parameters,
                              const at::Tensor& norm, int64_t global_step) {
  std::vector<std::string> names;
  double value = 0;
  for (const auto& [name, parameter] : parameters) {
    const at::Tensor& gradient = parameter.grad();
    if (!gradient.defined() || is_finite(gradient)) continue;
    if (names.empty()) value = first_non_finite(gradient);
    names.push_back(name);
  }
  if (names.empty()) {
    return {update, "the norm of the gradients", first_non_finite(norm), global_step};
  }
  return {update,
          fmt::format("the gradient{} of {}", names.size() > 1 ? "s" : "", list_text(names)), value,
          global_step};
}

}  // namespace

at::Tensor norm_of(const std::vector<at::Tensor>& gradients) {
  const at::Device device = gradients.front().device();
  std::vector<at::Tensor> norms = at::_foreach_norm(gradients, 2);
  for (auto& norm : norms) norm = norm.to(device);
  return at::linalg_vector_norm(at::stack(norms), 2);
}

/// Checks and clips the gradients; false when the update must not be made.
bool Update::clip() {
  const at::AutoDispatchBelowADInplaceOrView without_autograd;
  // Values that are cut off are finite afterwards, so their norm is no check.
  const bool norm_tells = clip_norm_ && !clip_value_;
  if (!check_rates()) return false;
  if (!norm_tells && !check_gradients({})) return false;
  if (clip_value_) {
    const double bound = clip_value_->at(clock_->global_step);
    at::_foreach_clamp_min_(tensors_, -bound);
    at::_foreach_clamp_max_(tensors_, bound);
  }
  if (clip_norm_) {
    std::vector<std::vector<at::Tensor>> groups;
    if (clips_by_group_) groups = optimizer_->gradients_by_group();
    std::vector<at::Tensor> norms;
    for (const auto& group : groups) norms.push_back(norm_of(group));
    grad_norm_ = norm_of(clips_by_group_ ? norms : tensors_);
    if (norm_tells && !check_gradients(grad_norm_)) return false;
    const double bound = clip_norm_->at(clock_->global_step);
    if (!clips_by_group_) scale_to_norm(tensors_, grad_norm_, bound);
    for (size_t i = 0; i < groups.size(); ++i) scale_to_norm(groups[i], norms[i], bound);
  }
  return true;
}

/// Whether gradients that are not finite leave this update out; they halve the scale of the losses.
/// A GPU decides by itself.
bool Update::is_left_out_by_scale() {
  if (!scale_) return false;
  if (device_check_ || !scale_->factor().is_cpu()) {
    found_inf_ = scale_->found_inf();
    return false;
  }
  if (!scale_->is_overflow()) return false;
  scale_->adjust(scale_->found_inf());
  if (on_nan_ == OnNan::kIgnore) return true;
  const NonFinite finding =
      shared_finding(describe_non_finite(name_, optimizer_->parameters(), {}, clock_->global_step));
  const bool is_of_loss = finding.subject().starts_with("the loss of ");
  if (is_of_loss || scale_->is_spent()) leave_out(finding);
  return true;
}

/// The numbers of a schedule may become infinite or NaN.
bool Update::check_rates() {
  if (on_nan_ == OnNan::kIgnore) return true;
  const auto bad = optimizer_->bad_rate(clock_->global_step);
  if (bad) leave_out({name_, bad->name, bad->value, clock_->global_step});
  return !bad;
}

/// Checks `norm`, or all gradients when `norm` is undefined. False when the update is known at once
/// not to be allowed.
bool Update::check_gradients(const at::Tensor& norm) {
  if (on_nan_ == OnNan::kIgnore) return true;
  if (device_check_) {
    std::vector<at::Tensor> checked;
    if (norm.defined()) {
      checked = {norm};
    } else if (is_captured_) {
      const int64_t size = piece_size(tensors_);
      for (const auto& gradient : tensors_) {
        const int64_t most = have_one_layout({gradient}) ? size : gradient.numel();
        for (auto& piece : pieces_of(gradient, most)) checked.push_back(std::move(piece));
      }
    }
    found_inf_ = device_check_->check(checked.empty() ? tensors_ : checked);
    device_check_->note(clock_->global_step);
    return true;
  }
  if (scale_ && !norm.defined()) return true;  // its gradients are checked
  const bool all_finite =
      norm.defined() ? is_finite(norm) : std::all_of(tensors_.begin(), tensors_.end(), is_finite);
  if (!all_finite) {
    leave_out(shared_finding(
        describe_non_finite(name_, optimizer_->parameters(), norm, clock_->global_step)));
  }
  return all_finite;
}

/// Among several processes, the first process whose loss was not finite is the cause.
NonFinite Update::shared_finding(NonFinite own) {
  if (world_ == nullptr) return own;
  const auto bad = std::exchange(bad_loss_, std::nullopt);
  const auto all = world_->gather_texts(bad ? fmt::format("{}", *bad) : "");
  for (int rank = 0; rank < world_->size(); ++rank) {
    const std::string& value = all[static_cast<size_t>(rank)];
    if (value.empty()) continue;
    return {name_, fmt::format("the loss of {}", world_->describe(rank)),
            std::strtod(value.c_str(), nullptr), clock_->global_step};
  }
  return own;
}

void Update::clear_gradients() {
  is_pending_ = false;
  weights_.clear();
  for (const auto& [name, parameter] : optimizer_->parameters()) parameter.mutable_grad().reset();
}

/// Throws with `stop`; otherwise remembers the first finding.
void Update::leave_out(const NonFinite& why) {
  if (on_nan_ == OnNan::kStop) {
    has_non_finite_ = false;
    tensors_.clear();
    clear_gradients();
    throw why;
  }
  if (!first_unread_) first_unread_ = why;
  ++unread_;
}

std::string Update::read_uncounted() {
  if (uncounted_ <= 0) return {};
  const int64_t count = std::exchange(uncounted_, -1);
  return fmt::format(
      "{}: nothing counts in {} {} so far, the first in step {}: every label, token or pixel is "
      "left "
      "out, as by -100. Such a batch adds nothing to gradients and logs",
      name_, count, count == 1 ? "batch" : "batches", first_uncounted_ + 1);
}

std::string Update::read_non_finite() {
  if (device_check_) {
    const auto reading = device_check_->read();
    device_check_->reset();
    if (reading.left_out > 0) {
      const NonFinite found(name_, "the loss or a gradient", std::nullopt, reading.first_step);
      count_ -= reading.left_out;
      const bool is_by_scale = scale_ && !scale_->is_spent();
      if (on_nan_ == OnNan::kStop && !is_by_scale) throw found;
      skipped_ += reading.left_out;
      if (!is_by_scale) {
        unread_ = reading.left_out;
        first_unread_ = found;
      }
    }
  }
  if (!first_unread_) return {};
  const std::string finding = first_unread_->finding();
  first_unread_.reset();
  const int64_t count = std::exchange(unread_, 0);
  if (count == 1) return fmt::format("{}: {}: the update was left out", name_, finding);
  return fmt::format("{}: {} updates were left out, the first for {}", name_, count, finding);
}

}  // namespace stepop
