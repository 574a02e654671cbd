#include "runtime/train/optim/update.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/ones_like.h>
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
  for (const char* key : {"clip_norm", "clip_value"}) {
    if (!optimizer_->evaluates_again() || !config.has(key)) continue;
    throw config.error(key,
                       "the optimizer computes the loss several times in a step, and trusts "
                       "its gradients: leave it out");
  }
  if (config.get("state_on_cpu", false)) {
    if (optimizer_->evaluates_again() || optimizer_->has_averages()) {
      throw config.error("state_on_cpu",
                         "the optimizer needs its state in other places than its update: leave it "
                         "out");
    }
    optimizer_->keep_state_on_cpu();
  }
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
  if (!in_graph_) show_loss(mean);
  if (has_non_finite_) return;  // the step is dropped, whatever is added
  if (world_ == nullptr && checks_now() && !is_finite(loss)) {
    has_non_finite_ = true;
    return leave_out({name_, "the loss", first_non_finite(loss), clock_->global_step});
  }
  if (in_graph_) {
    captured_losses_.push_back(checkable(mean));
  } else if (device_check_ && world_ == nullptr) {
    device_check_->add_loss(checkable(mean));
  }
  pass_back(loss, seed_of(mean, share), retain_graph, is_only_one);
  is_pending_ = true;
}

/// The backward pass of `loss`, for the update's parameters alone.
void Update::pass_back(const at::Tensor& loss, const at::Tensor& seed, bool retain_graph,
                       bool is_only_one) {
  tensors_.clear();
  for (const auto& [name, parameter] : optimizer_->parameters()) {
    if (parameter.requires_grad()) tensors_.push_back(parameter);
  }
  if (tensors_.empty()) {
    throw Error("none of the update's parameters requires a gradient; they are: " +
                list_names(optimizer_->parameters()));
  }
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
}

/// The gradients and the weights of all processes; the overlap has already summed gradients.
void Update::sum_gradients() {
  for (const auto& [name, parameter] : optimizer_->parameters()) {
    if (!parameter.grad().defined() || !parameter.grad().is_sparse()) continue;
    throw Error(fmt::format(
        "{}: the gradient of {} is sparse, which several processes do not add up: an embedding "
        "without sparse, or one process",
        name_, name));
  }
  const bool is_summed = std::exchange(is_summed_, false);
  if (is_summed && !weights_.are_given()) return;
  const Span span(profile_, "sums of gradients");
  const at::Tensor weights = weights_.are_given() ? weights_.sums() : at::Tensor();
  is_summed ? world_->sum(weights) : gradient_sum_->sum(weights);
  if (weights.defined()) weights_.set_sums(weights);
}

void Update::apply() {
  // A copy, as what it calls takes the member away.
  if (const auto in_graph = in_graph_) return in_graph();
  const Span span(profile_, "update");
  if (std::exchange(has_non_finite_, false)) {
    ++skipped_;
    return clear_gradients();
  }
  const int64_t global_step = clock_->global_step;
  if (world_ != nullptr) sum_gradients();
  tensors_.clear();
  for (const auto& [name, parameter] : optimizer_->parameters()) {
    at::Tensor& gradient = parameter.mutable_grad();
    if (!gradient.defined()) continue;
    if (gradient.is_sparse()) gradient = gradient.coalesce();  // each row once
    tensors_.push_back(numbers_of(gradient));
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
  const bool is_allowed = !is_overflow && clip();
  tensors_.clear();
  if (is_allowed) clear_when_due(global_step);
  if (is_allowed && step_optimizer(global_step)) {
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

}  // namespace stepop
