#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/formats/state.h"
#include "runtime/optim/device_finite_check.h"
#include "runtime/optim/non_finite.h"
#include "runtime/optim/optimizer.h"
#include "runtime/optim/schedule.h"
#include "runtime/optim/step_clock.h"

namespace stepop {

class Profile;

/// What follows a loss: gradients, their accumulation over the batches of a training step, their
/// clipping, the optimizer's step. Nothing here waits for the device.
///
///   update_.step(loss.mean());
///
/// An update with a loss or a gradient that is NaN or infinite does not happen: parameters, the
/// optimizer's state and `count` stay. One bad batch of a training step spoils the whole step.
/// Checked are all gradients before they are clipped, or, as it is there, the norm of `clip_norm`.
/// On the CPU this is known at once. A GPU keeps it in a flag that the optimizer's kernels honour,
/// and `read_non_finite` tells it later.
class Update {
 public:
  /// `config` is the optimizer's own part, its name or a map: `{class: Adam, lr: 1e-3, clip_norm:
  /// 1, clip_value: 0.5}`; both bounds are numbers or schedules and off by default. `clock` is the
  /// training loop's, and must outlive this. `checks_on_device` chooses the GPU's way of checking;
  /// by default it is taken when a parameter is not on the CPU.
  Update(const Config& config, NamedParameters parameters, const StepClock& clock,
         OnNan on_nan = OnNan::kStop, std::optional<bool> checks_on_device = std::nullopt);

  /// `backward(loss)`; after the last batch of the training step also `apply()`. To be called once
  /// a batch when gradients are accumulated.
  void step(const at::Tensor& loss);

  /// Adds the gradients of `loss`, divided by the batches in the training step, to those of this
  /// update's parameters; of no others, so that a generator's loss leaves nothing in the
  /// discriminator. `retain_graph` allows a second backward through the same graph. Throws Error
  /// for a loss that is not one number or depends on nothing that requires a gradient; NonFinite
  /// for one that is NaN or infinite.
  void backward(const at::Tensor& loss, bool retain_graph = false);

  /// Clips the gradients, first each value, then the norm over all, as torch.nn.utils does; makes
  /// the optimizer's step; makes the gradients undefined; counts. Throws Error when no parameter
  /// has a gradient; NonFinite, with the gradients made undefined, for one that is NaN or infinite.
  void apply();

  /// Tells of updates that were left out since the last call: with `on_nan: skip` a warning, empty
  /// when there were none; with `stop`, throws the NonFinite that a GPU found: no update happened
  /// since then. Waits for a GPU. To be called before logs and checkpoints are taken.
  std::string read_non_finite();

  /// Says that no graph reaches parameters of others, as in a run whose only update trains all that
  /// is trained: `backward` need not pick its own ones then, which saves microseconds a step.
  void set_alone(bool alone) { is_alone_ = alone; }

  /// Measures `backward` and `apply`; null, the default, measures nothing.
  void set_profile(Profile* profile) { profile_ = profile; }

  /// The norm over all gradients before `clip_norm` scaled them in the last update, also in one
  /// that was left out; a tensor [] on the device; undefined without `clip_norm` and before the
  /// first update.
  const at::Tensor& grad_norm() const { return grad_norm_; }

  /// How many updates were made. Those that a GPU left out count until `read_non_finite`.
  int64_t count() const { return count_; }

  /// How many updates were left out with `on_nan: skip`. Those that a GPU left out count from
  /// `read_non_finite` on.
  int64_t skipped() const { return skipped_; }

  /// The learning rate of the last update; before the first, that of the next.
  double lr() const { return lr_ ? *lr_ : optimizer_->lr(clock_->global_step); }

  const Optimizer& optimizer() const { return *optimizer_; }

  /// The optimizer's state, `count` and `skipped`; between `backward` and `apply` also the
  /// gradients that wait, `<parameter>.grad`, or `spoilt` when one of their losses was not finite.
  /// Waits for a GPU.
  State state() const;
  /// Throws Error, and changes nothing, when the state is not of such an update.
  void load_state(const State& state);

 private:
  void load_pending(const State& pending);
  bool checks_now() const { return on_nan_ != OnNan::kIgnore && !device_check_; }
  void clear_gradients();
  void leave_out(const NonFinite& why);
  bool check_gradients(const at::Tensor& norm);
  bool clip();

  std::string name_;
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<Scheduled> clip_norm_;
  std::optional<Scheduled> clip_value_;
  const StepClock* clock_;
  OnNan on_nan_;
  Profile* profile_ = nullptr;
  bool is_alone_ = false;
  int64_t count_ = 0;
  int64_t skipped_ = 0;
  std::optional<double> lr_;
  at::Tensor grad_norm_;
  std::vector<at::Tensor> tensors_;  ///< Scratch, empty between calls.

  bool is_pending_ = false;  ///< Gradients wait for `apply`.
  bool is_spoilt_ = false;   ///< A loss of the next update was not finite.
  int64_t unread_ = 0;       ///< Left out since the last `read_non_finite`.
  std::optional<NonFinite> first_unread_;
  std::optional<DeviceFiniteCheck> device_check_;
  at::Tensor found_inf_;  ///< Of the update at hand; undefined without `device_check_`.
};

}  // namespace stepop
