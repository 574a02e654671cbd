#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <type_traits>
#include <variant>

#include "runtime/core/base/ordered_map.h"
#include "runtime/core/pictures/curve.h"

namespace stepop {

/// A number, or a tensor with one element that stays on its device until it is logged.
class Scalar {
 public:
  Scalar() = default;
  template <class T>
  requires std::is_arithmetic_v<T> Scalar(T number) : value_(static_cast<double>(number)) {}
  Scalar(at::Tensor tensor) : value_(std::move(tensor)) {}

  /// The tensor, or null when it is a number.
  const at::Tensor* tensor() const { return std::get_if<at::Tensor>(&value_); }

  /// The number; waits for the device when it is a tensor there. Throws Error with `name` for a
  /// tensor that is undefined or has not exactly one element.
  double read(const std::string& name) const;

 private:
  std::variant<double, at::Tensor> value_ = 0.0;
};

using Scalars = OrderedMap<Scalar>;

/// Pictures that follow one another.
struct Video {
  at::Tensor frames;             ///< [B, T, C, H, W] in [-1, 1], C as of images.
  double frames_per_second = 8;  ///< Above 0, up to 1000.
};

/// What `log_op` returns. A slash in a name makes a folder. Images, videos, histograms and curves
/// are pictures, and no two of them have the same name.
struct Logs {
  Scalars scalars = {};
  /// Batches of images [B, C, H, W] in [-1, 1], shown as one grid each, as image_grid does.
  OrderedMap<at::Tensor> images = {};
  /// Batches of videos, shown as one grid each, that moves: an animated PNG.
  OrderedMap<Video> videos = {};
  /// UTF-8, such as what a language model wrote; shown above the progress bar and kept as files.
  OrderedMap<std::string> texts = {};
  /// Real tensors of any shape, whose elements are counted.
  OrderedMap<at::Tensor> histograms = {};
  OrderedMap<Curve> curves = {};
};

}  // namespace stepop
