#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "runtime/core/config/config.h"
#include "runtime/core/formats/state.h"

namespace stepop {

/// The factor of an update's losses with `precision: float16`, so that small gradients are not
/// rounded to 0 (torch.amp.GradScaler). Gradients are divided by it before anything reads them. An
/// update with gradients that are not finite is left out, and the factor is halved; after
/// `growth_interval` updates in a row that were made, it is doubled. A power of two changes no bit
/// of a gradient that float32 can hold. Nothing here waits for the device but `value` and
/// `is_overflow`.
class LossScale {
 public:
  struct Settings {
    double init_scale = 65536;
    int64_t growth_interval = 2000;
  };
  /// Reads the key `loss_scale` of a config. Throws UsageError for a value out of range.
  static Settings read(const Config& config);

  /// `device`: of the parameters.
  LossScale(const Settings& settings, const c10::Device& device);

  /// float32 [], on the device.
  const at::Tensor& factor() const { return factor_; }

  /// Divides gradients by the factor. Those on other devices are copied there.
  void unscale(std::vector<at::Tensor>& gradients);

  /// Whether a gradient of the last `unscale` was NaN or infinite: float32 [], 1 or 0.
  const at::Tensor& found_inf() const { return found_; }
  bool is_overflow() const { return found_.item<float>() != 0; }

  /// Halves or doubles the factor when it is time. `found_inf`: the update was left out.
  void adjust(const at::Tensor& found_inf);

  double value() const { return factor_.item<float>(); }
  /// Whether the factor is so small that it cannot be the cause of infinite gradients.
  bool is_spent() const { return value() < 1; }

  /// Adds `loss_scale` and `loss_scale_updates` to a state.
  void save(State& state) const;
  /// Moves them out of a state. Throws Error when they are not one number each.
  static State take(State& state);
  /// Loads what `take` returned. A state of another precision has nothing, and changes nothing.
  void load(const State& taken);

 private:
  Settings settings_;
  at::Tensor factor_;   ///< float32 [].
  at::Tensor updates_;  ///< int32 []: made since the factor changed.
  at::Tensor found_;    ///< float32 [].
};

}  // namespace stepop
