#include "runtime/train/optim/update.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_clamp_max.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <limits>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"
#include "runtime/core/measure/profile.h"
#include "runtime/train/distributed/gradient_sum.h"
#include "runtime/train/distributed/parameter_shards.h"
#include "runtime/train/distributed/world.h"

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

void check_loss(const std::string& update, const at::Tensor& loss) {
  if (!at::GradMode::is_enabled()) {
    throw Error(update +
                ": an update belongs in a train op: gradients are disabled here, as they are in "
                "log_op and eval_op");
  }
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

/// The loss for a device's check. A mean over nothing may be NaN there, with gradients of 0; any
/// other NaN is in the gradients, too.
at::Tensor checkable(const WeightedMean& mean) {
  const at::Tensor loss = mean.value().detach();
  if (!mean.has_weight()) return loss;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return at::nan_to_num(loss, 0, kInfinity, -kInfinity);
}

/// Rethrows the current exception of a backward. PyTorch advises retain_graph=True, with which most
/// training loops would run out of memory.
[[noreturn]] void rethrow_from_backward(const std::string& update) {
  try {
    throw;
  } catch (const PeerError&) {
    throw;
  } catch (const std::exception& error) {
    const std::string text = error_text(error);
    if (text.find("backward through the graph a second time") != std::string::npos) {
      throw Error(
          update +
          ": the graph of the loss, or a part of it, was used by an earlier backward, which freed "
          "it\n"
          "  a member keeps a tensor from one step to the next: detach() it, as in state_ = "
          "state.detach()\n"
          "  two losses share a part of the graph: add them and call step() once, or "
          "backward(first, /*retain_graph=*/true), backward(second), apply()\n"
          "  step() was called twice with one loss: call it once");
    }
    if (text.find("modified by an inplace operation") != std::string::npos) {
      throw Error(text +
                  "\nan update changes its parameters: a loss whose graph uses them needs its "
                  "backward() before that update, or a new forward pass after it");
    }
    throw;
  }
}

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

/// Whether each group of parameters is clipped by its own norm.
bool read_clip_by(const Config& config) {
  const std::string by = config.get("clip_by", "all");
  if (by != "all" && by != "group") {
    throw config.error("clip_by", fmt::format("expected all or group, found \"{}\"", by));
  }
  return by == "group";
}

std::vector<int64_t> read_clears_at(const Config& config) {
  if (!config.has("clear_state_at")) return {};
  const auto steps = config.get<std::vector<int64_t>>("clear_state_at");
  for (const int64_t step : steps) {
    if (step >= 0) continue;
    throw config.error("clear_state_at",
                       fmt::format("expected steps of 0 or more, found {}", step));
  }
  return steps;
}

}  // namespace

at::Tensor norm_of(const std::vector<at::Tensor>& gradients) {
  const at::Device device = gradients.front().device();
  std::vector<at::Tensor> norms = at::_foreach_norm(gradients, 2);
  for (auto& norm : norms) norm = norm.to(device);
  return at::linalg_vector_norm(at::stack(norms), 2);
}

Update::Update(const Config& config, NamedParameters parameters, const StepClock& clock,
               OnNan on_nan, std::optional<bool> checks_on_device)
    : name_(config.path().empty() ? "optimizer" : config.path()),
      optimizer_(optimizers().build(config, "", std::move(parameters))),
      clip_norm_(read_bound(config, "clip_norm")),
      clip_value_(read_bound(config, "clip_value")),
      clips_by_group_(read_clip_by(config)),
      clears_at_(read_clears_at(config)),
      clock_(&clock),
      on_nan_(on_nan) {
  const auto& all = optimizer_->parameters();
  const bool is_on_device = std::any_of(
      all.begin(), all.end(), [](const auto& parameter) { return !parameter.second.is_cpu(); });
  if (on_nan != OnNan::kIgnore && checks_on_device.value_or(is_on_device)) {
    device_check_.emplace(/*is_sticky=*/on_nan == OnNan::kStop);
  }
  if (clip_norm_) {
    grad_norm_ = at::full({}, std::numeric_limits<double>::quiet_NaN(),
                          at::TensorOptions(at::kFloat).device(all.front().second.device()));
  }
}

Update::~Update() = default;

void Update::share(World& world, bool shards) {
  if (world.is_alone()) return;
  world_ = &world;
  std::vector<at::Tensor> parameters;
  for (const auto& [name, parameter] : optimizer_->parameters()) parameters.push_back(parameter);
  if (shards && optimizer_->has_averages()) {
    throw Error(name_ +
                ": its averages are evaluated, which needs the whole state in every process: leave "
                "distributed/shard_optimizer out");
  }
  if (shards) {
    shards_ = std::make_unique<ParameterShards>(world, parameters);
    std::vector<char> own;
    for (size_t i = 0; i < parameters.size(); ++i) own.push_back(shards_->is_own(i) ? 1 : 0);
    optimizer_->keep(own);
  }
  gradient_sum_ = std::make_unique<GradientSum>(world, std::move(parameters));
}

void Update::scale_losses(const LossScale::Settings& settings) {
  scale_.emplace(settings, optimizer_->parameters().front().second.device());
  // An update that the scale leaves out must not end the training.
  if (device_check_) device_check_.emplace(/*is_sticky=*/false);
}

void Update::step(const WeightedMean& loss) {
  run_backward(loss, /*retain_graph=*/false, /*is_only_one=*/clock_->micro_batches == 1,
               /*share=*/1);
  if (clock_->is_last_micro_batch()) apply();
}

void Update::backward(const WeightedMean& loss, bool retain_graph, double share) {
  run_backward(loss, retain_graph, /*is_only_one=*/false, share);
}

/// The gradient with which the backward pass of the loss starts; undefined for 1.
at::Tensor Update::seed_of(const WeightedMean& mean, double share) {
  const bool is_whole = world_ == nullptr && clock_->micro_batches == 1 && share == 1;
  if (is_whole && !scale_) return {};
  const at::Tensor& loss = mean.value();
  at::Tensor seed =
      is_whole ? at::ones_like(loss.detach()) : weights_.seed(mean, share, *clock_, world_);
  if (scale_) seed.mul_(scale_->factor().to(seed.device()));
  if (world_ == nullptr || on_nan_ == OnNan::kIgnore) return seed;
  // A loss that is not finite makes all gradients NaN, and so also their sum in every process: each
  // process finds out by itself, in the same update.
  if (device_check_) return seed.add_(checkable(mean).mul(0));
  if (is_finite(loss)) return seed;
  if (!bad_loss_) bad_loss_ = first_non_finite(loss);
  return seed.fill_(std::numeric_limits<double>::quiet_NaN());
}

void Update::show_loss(const WeightedMean& loss) {
  std::erase_if(watches_of_losses_, [&](const auto& watch) { return !watch.second(loss); });
}

/// `is_only_one`: all gradients of the update come from this backward.
void Update::run_backward(const WeightedMean& mean, bool retain_graph, bool is_only_one,
                          double share) {
  const Span span(profile_, "backward");
  const at::Tensor& loss = mean.value();
  check_loss(name_, loss);
  if (mean.known_weight() == 0.0 && uncounted_ >= 0 && uncounted_++ == 0) {
    first_uncounted_ = clock_->global_step;
  }
  if (!cut_) show_loss(mean);
  if (has_non_finite_) return;  // the step is dropped, whatever is added
  if (world_ == nullptr && checks_now() && !is_finite(loss)) {
    has_non_finite_ = true;
    return leave_out({name_, "the loss", first_non_finite(loss), clock_->global_step});
  }
  if (cut_) {
    captured_losses_.push_back(checkable(mean));
  } else if (device_check_ && world_ == nullptr) {
    device_check_->add_loss(checkable(mean));
  }
  tensors_.clear();
  for (const auto& [name, parameter] : optimizer_->parameters()) {
    if (parameter.requires_grad()) tensors_.push_back(parameter);
  }
  if (tensors_.empty()) {
    throw Error("none of the update's parameters requires a gradient; they are: " +
                list_names(optimizer_->parameters()));
  }
  const at::Tensor seed = seed_of(mean, share);
  // The backward pass takes the types of the forward pass (torch.autocast asks for the same).
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const auto backward = [&] {
    loss.backward(seed, retain_graph, /*create_graph=*/false, at::TensorList(tensors_));
  };
  try {
    if (world_ != nullptr && is_only_one && !is_pending_ && gradient_sum_->overlaps()) {
      gradient_sum_->overlap(loss, backward, profile_);
      is_summed_ = true;
    } else {
      backward();
    }
  } catch (const std::exception&) {
    rethrow_from_backward(name_);
  }
  tensors_.clear();
  is_pending_ = true;
}

/// The gradients and the weights of all processes; the overlap has already summed gradients.
void Update::sum_gradients() {
  const bool is_summed = std::exchange(is_summed_, false);
  if (is_summed && !weights_.are_given()) return;
  const Span span(profile_, "sums of gradients");
  const at::Tensor weights = weights_.are_given() ? weights_.sums() : at::Tensor();
  is_summed ? world_->sum(weights) : gradient_sum_->sum(weights);
  if (weights.defined()) weights_.set_sums(weights);
}

void Update::apply() {
  if (const auto cut = cut_) return cut();  // a copy: `apply(left)` within it takes `cut_` away
  const Span span(profile_, "update");
  if (std::exchange(has_non_finite_, false)) {
    ++skipped_;
    return clear_gradients();
  }
  const int64_t global_step = clock_->global_step;
  if (world_ != nullptr) sum_gradients();
  tensors_.clear();
  for (const auto& [name, parameter] : optimizer_->parameters()) {
    const at::Tensor& gradient = parameter.grad();
    if (gradient.defined()) tensors_.push_back(gradient);
  }
  if (tensors_.empty()) {
    throw Error(fmt::format(
        "{}: an update without any gradient: the loss depends on none of its parameters, "
        "which are: {}",
        name_, list_names(optimizer_->parameters())));
  }
  weights_.correct(tensors_);
  if (scale_) scale_->unscale(tensors_);
  const bool is_overflow = is_left_out_by_scale();
  if (!is_overflow) {
    for (const auto& [watcher, watch] : std::exchange(watches_of_gradients_, {})) {
      watch(optimizer_->parameters());
    }
  }
  const bool is_made = !is_overflow && clip();
  tensors_.clear();
  if (is_made) {
    clear_when_due(global_step);
    optimizer_->step(global_step, found_inf_);
    if (shards_) {
      const Span share(profile_, "weights of the other processes");
      shards_->share();
    }
    if (scale_) scale_->adjust(found_inf_.defined() ? found_inf_ : scale_->found_inf());
    lr_step_ = global_step;
    ++count_;
  } else {
    ++skipped_;
  }
  clear_gradients();
}

/// If an update is left out, or is due in other steps only, the next update clears the state.
void Update::clear_when_due(int64_t global_step) {
  const int64_t until = cleared_until_.value_or(global_step - 1);
  const bool is_due = std::ranges::any_of(
      clears_at_, [&](int64_t step) { return step > until && step <= global_step; });
  if (is_due && count_ > 0) optimizer_->clear_state();
  cleared_until_ = global_step;
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
    const std::vector<at::Tensor> norms(norm.defined() ? 1 : 0, norm);
    found_inf_ = device_check_->check(norm.defined() ? norms : tensors_, clock_->global_step);
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
