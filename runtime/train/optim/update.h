#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/formats/state.h"
#include "runtime/core/log/weighted_mean.h"
#include "runtime/train/optim/loss_scale.h"
#include "runtime/train/optim/mean_weights.h"
#include "runtime/train/optim/non_finite.h"
#include "runtime/train/optim/optimizer.h"
#include "runtime/train/optim/schedule.h"
#include "runtime/train/optim/step_clock.h"

namespace stepop {

class GradientSum;
class ParameterShards;
class Profile;
class World;

/// What follows a loss: gradients, their accumulation over the batches of a training step, their
/// clipping, the optimizer's step. Nothing here waits for the device.
///
///   update_.step(loss.mean());
///
/// An update does not happen when a loss or a gradient is NaN or infinite: parameters, the
/// optimizer's state and `count` stay as they are. One bad batch of a training step drops the whole
/// step. All gradients are checked before they are clipped; where `clip_norm` computes their norm
/// anyway, the norm is checked instead. On the CPU the result is known at once. A GPU keeps the
/// result in a flag that the optimizer's kernels respect, and `read_non_finite` reports it later.
class Update {
 public:
  /// `config` is the optimizer's part, a name or a map: `{class: Adam, lr: 1e-3, clip_norm: 1,
  /// clip_value: 0.5}`. Both bounds are numbers or schedules, and off by default. With `clip_by:
  /// group` each group of parameters is scaled by its own norm. `clear_state_at: [1000]`: the first
  /// update from that training step on starts with new averages. `clock` belongs to the training
  /// loop, and must outlive this. `checks_on_device` chooses the GPU's way of checking; by default
  /// it is on when a parameter is not on the CPU.
  Update(const Config& config, NamedParameters parameters, const StepClock& clock,
         OnNan on_nan = OnNan::kStop, std::optional<bool> checks_on_device = std::nullopt);

  ~Update();

  /// From now on gradients are summed over the processes of `world`, which must outlive this,
  /// before they are clipped. Each process has its share of a batch, so the result is the gradient
  /// of the whole batch. A NaN or an infinity in one process reaches all processes. With `shards`
  /// each process keeps the optimizer's state for a part of the parameters, updates this part, and
  /// gets the other parameters from the other processes. Then `state` returns the state of the
  /// part, and `load_state` takes the state of all.
  void share(World& world, bool shards = false);

  /// From now on losses are scaled, for `precision: float16`. An update with infinite gradients is
  /// left out without a word, and `skipped` counts it; when the scale is below 1 and gradients are
  /// still not finite, `on_nan` decides. A loss that is not finite is found as without scaling.
  void scale_losses(const LossScale::Settings& settings);

  /// `backward(loss)`, followed by `apply()` after the last batch of the training step. Called once
  /// per batch when gradients are accumulated.
  void step(const WeightedMean& loss);

  /// The same for an optimizer that computes the loss several times in a step, such as LBFGS:
  /// `again` computes it with the weights of that moment. Other optimizers do not call it. Throws
  /// Error where such a step is not possible: with `accumulate`, several processes, float16
  /// and in a graph of the device.
  void step(const WeightedMean& loss, const std::function<WeightedMean()>& again);

  /// Adds the gradients of `loss` to the gradients of this update's parameters. No other tensor
  /// gets a gradient: a generator's loss leaves nothing in the discriminator. `retain_graph` allows
  /// a second backward through the same graph.
  ///
  /// `loss` must be a mean; a sum would be weighted as if it were a mean. A tensor is a mean over
  /// the examples of the batch. A mean over labels, tokens or pixels, of which some do not count,
  /// says its weight, in all processes or in none. The gradient of a training step is then that of
  /// the mean over all its batches and processes: the sum of weight x gradient / the sum of the
  /// weights. Several losses of one batch share these weights. A step in which nothing counts makes
  /// an update with gradients of 0.
  ///
  /// Throws Error for a loss that has more than one number, that depends on nothing that requires a
  /// gradient, or whose graph an earlier backward has freed, and where gradients are disabled, as
  /// in a log op. Throws NonFinite for a loss that is NaN or infinite.
  ///
  /// `share`: `loss` is a mean over such a part of the batch, for an iterator that divides batches
  /// itself.
  void backward(const WeightedMean& loss, bool retain_graph = false, double share = 1);

  /// Clips the gradients, first each value, then the norm over all, as torch.nn.utils does; makes
  /// the optimizer's step; makes the gradients undefined; counts the update. Throws Error when no
  /// parameter has a gradient. Throws NonFinite, with undefined gradients, for a gradient that is
  /// NaN or infinite.
  void apply();

  /// What `backward`, or all of the update, leaves in a step that is captured as a graph of the
  /// device. Each launch of the graph fills the same tensors again.
  struct Captured {
    std::vector<at::Tensor> losses;
    /// By parameter, undefined for none; empty if the update is in the graph.
    std::vector<at::Tensor> gradients;
    std::vector<at::Tensor> changed;  ///< The parameters that the graph updates.
    at::Tensor grad_norm;
  };

  /// Whether all of this step's update can be in a graph that is launched for further steps: no
  /// number of the host is read that another step changes, and nobody watches its gradients.
  bool is_repeatable() const;
  /// From now on, while a step is captured, `backward` does only what a graph can hold, and
  /// `in_graph` is called in the place of `apply`: it either ends the graph, takes what waits, and
  /// applies that outside; or it captures `apply`. An empty function ends that.
  void capture(std::function<void()> in_graph) { in_graph_ = std::move(in_graph); }
  Captured take_captured();
  Captured capture_apply();
  /// What `backward` and `apply` do besides the work of the graph that filled `captured`.
  void apply(const Captured& captured);
  /// Whether gradients wait for `apply`.
  bool is_pending() const { return is_pending_; }

  /// Reports the updates that were left out since the last call. With `on_nan: skip` it returns a
  /// warning, empty when there were none. With `stop` it throws the NonFinite that a GPU found; no
  /// update has happened since then. Waits for a GPU. Called before logs and checkpoints are taken.
  std::string read_non_finite();

  /// Reports, once, that losses were means over nothing: all that they would count was left out.
  /// Empty before, and afterwards. Only losses whose weight the host knows are seen.
  std::string read_uncounted();

  /// Calls `watch` with every loss before its backward, until `watch` returns false. `backward`
  /// passes on exceptions of `watch`. Each watcher replaces what it gave before; an empty function
  /// ends that.
  void watch_losses(const void* watcher, std::function<bool(const WeightedMean& loss)> watch) {
    watches_of_losses_.erase(watcher);
    if (watch) watches_of_losses_.emplace(watcher, std::move(watch));
  }

  /// Calls `watch` once with the gradients of the next update, before they are checked and clipped.
  /// The list has the parameters with a gradient. Each watcher replaces what it gave before; an
  /// empty function ends that.
  void watch_gradients(const void* watcher,
                       std::function<void(const NamedParameters& parameters)> watch) {
    watches_of_gradients_.erase(watcher);
    if (watch) watches_of_gradients_.emplace(watcher, std::move(watch));
  }

  /// Measures `backward` and `apply`; null, the default, measures nothing.
  void set_profile(Profile* profile) { profile_ = profile; }

  /// The norm over all gradients before `clip_norm` scaled them in the last update, even if that
  /// update was left out: a tensor [] on the device, NaN before the first update of a start, so
  /// that a log op can return it. Without `clip_norm` the norm is undefined; `clip_norm: .inf`
  /// computes it without clipping.
  const at::Tensor& grad_norm() const { return grad_norm_; }

  /// The factor of the losses: a tensor [] on the device; undefined without `scale_losses`.
  at::Tensor loss_scale() const { return scale_ ? scale_->factor() : at::Tensor(); }

  /// The number of updates that were made. Updates that a GPU left out count until
  /// `read_non_finite`.
  int64_t count() const { return count_; }

  /// The number of updates that were left out, with `on_nan: skip` or by the scale of the losses.
  /// Updates that a GPU left out count from `read_non_finite` on.
  int64_t skipped() const { return skipped_; }

  /// The learning rate of the last update, outside of groups that have their own; before the first
  /// update, the rate of the next update. Always a number that a log op can return.
  double lr() const { return optimizer_->lr(lr_step_.value_or(clock_->global_step)); }

  /// The rates of all groups at the last update, as in `Optimizer::lrs`.
  std::vector<double> lrs() const {
    return optimizer_->lrs(lr_step_.value_or(clock_->global_step));
  }

  const Optimizer& optimizer() const { return *optimizer_; }

  /// The optimizer's state, the scale of losses, `count`, `skipped` and `lr_step`, and
  /// `cleared_until` with `clear_state_at`. Between `backward` and `apply` also the waiting
  /// gradients,
  /// `<parameter>.grad`, and `spoilt` when one of their losses was not finite. Waits for a GPU.
  State state() const;
  /// Throws Error, and changes nothing, when the state does not fit this update.
  void load_state(const State& state);

 private:
  void load_pending(const State& pending);
  void show_loss(const WeightedMean& loss);
  void run_backward(const WeightedMean& mean, bool retain_graph, bool is_only_one, double share);
  void pass_back(const at::Tensor& loss, const at::Tensor& seed, bool retain_graph,
                 bool is_only_one);
  at::Tensor seed_of(const WeightedMean& mean, double share);
  void sum_gradients();
  NonFinite shared_finding(NonFinite own);
  bool checks_now() const { return on_nan_ != OnNan::kIgnore && !device_check_; }
  void clear_gradients();
  void leave_out(const NonFinite& why);
  bool check_gradients(const at::Tensor& norm);
  bool check_rates();
  bool is_left_out_by_scale();
  bool clip();
  void clear_when_due(int64_t global_step);
  void check_can_evaluate_again() const;
  double evaluate(const std::function<WeightedMean()>& again);
  bool step_optimizer(int64_t global_step);

  std::string name_;
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<Scheduled> clip_norm_;
  std::optional<Scheduled> clip_value_;
  bool clips_by_group_;
  std::vector<int64_t> clears_at_;  ///< Training steps.
  const StepClock* clock_;
  OnNan on_nan_;
  World* world_ = nullptr;  ///< Null with a single process.
  std::unique_ptr<GradientSum> gradient_sum_;
  std::unique_ptr<ParameterShards> shards_;  ///< Null when each process updates all parameters.
  bool is_summed_ = false;                   ///< The gradients are already the sums.
  MeanWeights weights_;
  std::optional<double> bad_loss_;  ///< This process's first loss that is not finite.
  Profile* profile_ = nullptr;
  std::map<const void*, std::function<bool(const WeightedMean&)>> watches_of_losses_;
  std::map<const void*, std::function<void(const NamedParameters&)>> watches_of_gradients_;
  int64_t count_ = 0;
  int64_t skipped_ = 0;
  std::optional<int64_t> lr_step_;  ///< The last update's step; none in older checkpoints.
  /// The step up to which `clears_at_` is done. Without a number: the step before the next update.
  std::optional<int64_t> cleared_until_;
  at::Tensor grad_norm_;
  std::vector<at::Tensor> tensors_;  ///< Scratch, empty between calls.
  std::function<void()> in_graph_;   ///< Empty while no step is captured.
  bool is_captured_ = false;         ///< Within `capture_apply`.
  std::vector<at::Tensor> captured_losses_;

  /// The loss of this step, and how it is computed anew; only within the second `step`.
  std::optional<std::pair<double, std::function<WeightedMean()>>> again_;
  bool is_pending_ = false;      ///< Gradients wait for `apply`.
  bool has_non_finite_ = false;  ///< A loss of the next update was not finite.
  int64_t uncounted_ = 0;        ///< Losses over nothing; -1 once that was reported.
  int64_t first_uncounted_ = 0;  ///< Complete training steps before the first of them.
  int64_t unread_ = 0;           ///< Updates left out since the last `read_non_finite`.
  std::optional<NonFinite> first_unread_;
  std::optional<DeviceFiniteCheck> device_check_;
  std::optional<LossScale> scale_;
  at::Tensor found_inf_;  ///< For the current update; undefined without `device_check_`.
};

/// The norm over all gradients, as in torch.nn.utils.clip_grad_norm_: [], on the device of the
/// first gradient. `gradients` has at least one tensor.
at::Tensor norm_of(const std::vector<at::Tensor>& gradients);

}  // namespace stepop
