#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "runtime/checkpoint/state.h"
#include "runtime/optim/optimizer.h"
#include "runtime/optim/schedule.h"
#include "runtime/optim/step_clock.h"

namespace stepop {

/// What follows a loss: gradients, their accumulation over the batches of a training step, their
/// clipping, the optimizer's step. Nothing here waits for the device.
///
///   update_.step(loss.mean());
class Update {
 public:
  /// `config` is the optimizer's own part, its name or a map: `{class: Adam, lr: 1e-3, clip_norm:
  /// 1, clip_value: 0.5}`; both bounds are numbers or schedules and off by default. `clock` is the
  /// training loop's, and must outlive this.
  Update(const Config& config, NamedParameters parameters, const StepClock& clock);

  /// `backward(loss)`; after the last batch of the training step also `apply()`. To be called once
  /// a batch when gradients are accumulated.
  void step(const at::Tensor& loss);

  /// Adds the gradients of `loss`, divided by the batches in the training step, to those of this
  /// update's parameters; of no others, so that a generator's loss leaves nothing in the
  /// discriminator. `retain_graph` allows a second backward through the same graph. Throws Error
  /// for a loss that is not one number or depends on nothing that requires a gradient.
  void backward(const at::Tensor& loss, bool retain_graph = false);

  /// Clips the gradients, first each value, then the norm over all, as torch.nn.utils does; makes
  /// the optimizer's step; makes the gradients undefined; counts. Throws Error when no parameter
  /// has a gradient.
  void apply();

  /// Says that no graph reaches parameters of others, as in a run whose only update trains all that
  /// is trained: `backward` need not pick its own ones then, which saves microseconds a step.
  void set_alone(bool alone) { is_alone_ = alone; }

  /// The norm over all gradients before `clip_norm` scaled them in the last update, a tensor [] on
  /// the device; undefined without `clip_norm` and before the first update.
  const at::Tensor& grad_norm() const { return grad_norm_; }

  /// How many updates were made.
  int64_t count() const { return count_; }

  /// The learning rate of the last update; before the first, that of the next.
  double lr() const { return lr_ ? *lr_ : optimizer_->lr(clock_->global_step); }

  const Optimizer& optimizer() const { return *optimizer_; }

  /// The optimizer's state and `count`.
  State state() const;
  /// Throws Error, and changes nothing, when the state is not of such an update.
  void load_state(const State& state);

 private:
  void clip(int64_t global_step);

  std::unique_ptr<Optimizer> optimizer_;
  std::optional<Scheduled> clip_norm_;
  std::optional<Scheduled> clip_value_;
  const StepClock* clock_;
  bool is_alone_ = false;
  int64_t count_ = 0;
  std::optional<double> lr_;
  at::Tensor grad_norm_;
  std::vector<at::Tensor> tensors_;  ///< Scratch, empty between calls.
};

}  // namespace stepop
