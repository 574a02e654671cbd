#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/config/config.h"
#include "runtime/core/formats/state.h"

namespace stepop {

/// What to do with an update whose loss or gradients are NaN or infinite.
enum class OnNan {
  kStop,    ///< The update is not made, and NonFinite is thrown.
  kSkip,    ///< The update is not made; the training continues.
  kIgnore,  ///< Nothing is checked: NaN and infinity reach the weights, as with torch.optim.
};

/// The key `on_nan` of a config: `stop`, the default, `skip` or `ignore`. Throws UsageError for
/// anything else.
OnNan read_on_nan(const Config& config);

/// A loss or a gradient was NaN or infinite, and the update was not made: its parameters and the
/// optimizer's state are as before, bit for bit. When a training step has several updates (a GAN),
/// the updates before this one were made, so the state is not the state at the start of the step.
class NonFinite : public Error {
 public:
  NonFinite(std::string update, std::string subject, std::optional<double> value,
            int64_t global_step);

  /// The path of the update's config, `optimizer`.
  const std::string& update() const { return update_; }
  /// `the loss`, `the gradients of conv1.weight, conv1.bias and 8 more`, or `the norm of the
  /// gradients`. A GPU only reports `the loss or a gradient`.
  const std::string& subject() const { return subject_; }
  /// The first number that is not finite; nothing when a GPU found it.
  const std::optional<double>& value() const { return value_; }
  /// The number of complete training steps; the error arose in the next step.
  int64_t global_step() const { return global_step_; }

  /// `nan in the loss in step 732`
  std::string finding() const;

 private:
  std::string update_;
  std::string subject_;
  std::optional<double> value_;
  int64_t global_step_;
};

/// Weights or buffers became NaN or infinite although losses and gradients were finite. Such a
/// checkpoint would be useless, so none is written.
class NonFiniteWeights : public Error {
 public:
  using Error::Error;
};

/// Names of the tensors in checkpoints that training must keep finite.
struct FiniteNames {
  std::vector<std::string> weights;
  /// Buffers, such as running statistics. Others than `running_mean` and `running_var` may become
  /// infinite, as masks do, and not NaN.
  std::vector<std::string> buffers;
};

/// Throws NonFiniteWeights when any of the `names` in `state` holds NaN or infinity; `global_step`
/// is for the message. The check runs on this thread alone, on CPU memory.
void check_weights(const State& state, const FiniteNames& names, int64_t global_step);

/// Whether every number of a floating-point tensor is finite. On the CPU this is one pass over the
/// memory; on any other device it waits for the device.
bool is_finite(const at::Tensor& tensor);

/// The first number that is not finite, in the order of the elements; 0 when all are.
double first_non_finite(const at::Tensor& tensor);

/// Records on a GPU whether losses and gradients are finite; only `read` waits for the GPU.
class DeviceFiniteCheck {
 public:
  /// `is_sticky`: after an update that must not happen, no later update happens either.
  explicit DeviceFiniteCheck(bool is_sticky) : is_sticky_(is_sticky) {}

  /// Adds a loss of the next update.
  void add_loss(const at::Tensor& loss) { losses_.push_back(loss.detach()); }

  /// Checks the losses and `tensors`, at least one tensor. Called once per update, or once for a
  /// graph of the device that repeats it. Returns the `found_inf` of the fused kernels, on the
  /// device of the first tensor: float32 [], 1 when the update must not happen, otherwise 0. The
  /// next call overwrites the result.
  const at::Tensor& check(const std::vector<at::Tensor>& tensors);

  /// Called with every update that is checked. `global_step`: complete training steps before it.
  void note(int64_t global_step);
  /// The last update was only captured.
  void forget_last() { steps_.pop_back(); }

  struct Reading {
    int64_t left_out = 0;     ///< Updates that did not happen since the last `reset`.
    int64_t first_step = -1;  ///< Complete training steps before the first of these updates.
  };
  /// Waits for the device, unless nothing was checked since the last call.
  Reading read() const;

  /// Resets the counts to 0; a sticky flag stays set.
  void reset();

 private:
  void begin(const at::Device& device);

  bool is_sticky_;
  std::vector<at::Tensor> losses_;
  std::vector<int64_t> steps_;           ///< Of the updates since the last `reset`.
  mutable std::optional<Reading> last_;  ///< What `read` found; nothing after another update.
  // These change in place, as a graph of the device needs it.
  at::Tensor found_;     ///< float32 [].
  at::Tensor one_;       ///< float32 [].
  at::Tensor left_out_;  ///< float64 [].
  at::Tensor good_;      ///< Updates before the first that was left out, float64 []; not if sticky.
};

}  // namespace stepop
