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

/// What becomes of an update whose loss or gradients are NaN or infinite.
enum class OnNan {
  kStop,    ///< It is not made, and NonFinite is thrown.
  kSkip,    ///< It is not made; the training continues.
  kIgnore,  ///< Nothing is checked: NaN and infinity reach the weights, as with torch.optim.
};

/// The key `on_nan` of a config: `stop`, the default, `skip` or `ignore`. Throws UsageError for
/// anything else.
OnNan read_on_nan(const Config& config);

/// A loss or a gradient was NaN or infinite, and the update was not made: parameters and state of
/// the optimizer are as before it, bit for bit. With several updates in a training step (a GAN),
/// those before this one were made, so the state is then not the one the step began with.
class NonFinite : public Error {
 public:
  NonFinite(std::string update, std::string subject, std::optional<double> value,
            int64_t global_step);

  /// The path of the update's config: `optimizer`.
  const std::string& update() const { return update_; }
  /// `the loss`, `the gradients of conv1.weight, conv1.bias and 8 more`, or `the norm of the
  /// gradients`. A GPU only reports `the loss or a gradient`.
  const std::string& subject() const { return subject_; }
  /// The first number that is not finite; none when a GPU found it.
  const std::optional<double>& value() const { return value_; }
  /// Training steps that were complete; it was found in the one after them.
  int64_t global_step() const { return global_step_; }

  /// `nan in the loss in step 732`
  std::string finding() const;

 private:
  std::string update_;
  std::string subject_;
  std::optional<double> value_;
  int64_t global_step_;
};

/// Weights became NaN or infinite by updates whose losses and gradients were finite: as a
/// checkpoint they would lead nowhere, so none is written.
class NonFiniteWeights : public Error {
 public:
  using Error::Error;
};

/// Throws NonFiniteWeights when any of the `names` in `state` holds NaN or infinity; `global_step`
/// is for the message. This thread alone looks, at memory of the CPU.
void check_weights(const State& state, const std::vector<std::string>& names, int64_t global_step);

/// Whether every number of a floating-point tensor is finite. On the CPU one pass over the memory;
/// waits for any other device.
bool is_finite(const at::Tensor& tensor);

/// The first number that is not finite, in the order of the elements; 0 when all are.
double first_non_finite(const at::Tensor& tensor);

/// Keeps, on a GPU, whether losses and gradients are finite: only `read` waits for it.
class DeviceFiniteCheck {
 public:
  /// `is_sticky`: after an update that must not happen, no later one happens.
  explicit DeviceFiniteCheck(bool is_sticky) : is_sticky_(is_sticky) {}

  /// A loss of the next update.
  void add_loss(const at::Tensor& loss) { losses_.push_back(loss.detach()); }

  /// Checks the losses and `tensors`, of which there is at least one. To be called once an update.
  /// Returns what the fused kernels take as `found_inf`, on the device of the first tensor:
  /// float32 [], 1 when the update must not happen, else 0. It is overwritten by the next call.
  const at::Tensor& check(const std::vector<at::Tensor>& tensors, int64_t global_step);

  struct Reading {
    int64_t left_out = 0;     ///< Updates that did not happen since the last `reset`.
    int64_t first_step = -1;  ///< Training steps that were complete at the first of them.
  };
  /// Waits for the device.
  Reading read() const;

  /// Counts from 0 again; a sticky flag stays set.
  void reset();

 private:
  void begin(const at::Device& device);

  bool is_sticky_;
  std::vector<at::Tensor> losses_;
  at::Tensor found_;       ///< float32 [].
  at::Tensor one_;         ///< float32 [].
  at::Tensor left_out_;    ///< float64 [].
  at::Tensor first_step_;  ///< float64 [], infinite for none.
};

}  // namespace stepop
