#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <variant>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/log/weighted_mean.h"
#include "runtime/core/pictures/curve.h"

namespace stepop {

/// A number, or a tensor with one element that stays on its device until it is logged. A mean takes
/// its weight along.
class Scalar {
 public:
  Scalar() = default;
  template <class T>
  requires std::is_arithmetic_v<T> Scalar(T number) : value_(static_cast<double>(number)) {}
  Scalar(at::Tensor tensor) : value_(std::move(tensor)) {}
  Scalar(WeightedMean mean);

  /// The tensor, or null when it is a number.
  const at::Tensor* tensor() const { return std::get_if<at::Tensor>(&value_); }

  /// The number; waits for the device if the number is a tensor there. Throws Error with `name`
  /// unless the tensor is defined and has exactly one element.
  double read(const std::string& name) const;

  /// The mean with its weight, or null when the scalar has no weight.
  const WeightedMean* weighted() const { return weighted_.get(); }

 private:
  std::variant<double, at::Tensor> value_ = 0.0;
  std::shared_ptr<const WeightedMean> weighted_;
};

/// The mean of two scalars, by their weights where both have one, otherwise by `count_a` and
/// `count_b`, whose sum is above 0. A scalar that counts 0 may be NaN. Throws as `read`.
Scalar mean_of(const std::string& name, const Scalar& a, double count_a, const Scalar& b,
               double count_b);

using Scalars = OrderedMap<Scalar>;

/// A sequence of pictures.
struct Video {
  at::Tensor frames;             ///< [B, T, C, H, W] in [-1, 1], C as for images.
  double frames_per_second = 8;  ///< Above 0, up to 1000.
};

/// A batch of sounds, of which the first kMostLoggedSounds are kept.
struct Audio {
  at::Tensor samples;  ///< [B, T] or [B, C, T] in [-1, 1].
  int64_t rate = 0;    ///< Samples a second.
};
inline constexpr int64_t kMostLoggedSounds = 4;

/// The result of `log_op`. A slash in a name makes a folder. Images, videos, audio, histograms and
/// curves must all have different names.
struct Logs {
  Scalars scalars = {};
  /// Batches of images [B, C, H, W] in [-1, 1], each shown as one grid, see image_grid.
  OrderedMap<at::Tensor> images = {};
  /// Batches of videos, each shown as one moving grid: an animated PNG.
  OrderedMap<Video> videos = {};
  /// Batches of sounds: .wav files of 16 bits, `<name>/0` to `<name>/3`.
  OrderedMap<Audio> audio = {};
  /// UTF-8, such as the output of a language model; shown above the progress bar and kept as files.
  OrderedMap<std::string> texts = {};
  /// Real tensors of any shape; the histogram counts their elements.
  OrderedMap<at::Tensor> histograms = {};
  OrderedMap<Curve> curves = {};
};

/// The scalars of all ops, by `op/key`, without means over nothing. Waits once for a device, for
/// all that lie there. Throws as `Scalar::read`.
OrderedMap<double> read_scalars(const OrderedMap<Logs>& logs);

}  // namespace stepop
