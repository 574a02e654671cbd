#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <span>

#include "iterators/vunet/data/keypoint_model.h"
#include "runtime/core/components/parameters.h"

namespace stepop::vunet {

/// A point of an image in pixels: (0, 0) is the upper left corner of the image, (0.5, 0.5) the
/// centre of the first pixel.
struct Joint {
  double x = 0;
  double y = 0;

  /// OpenPose gives a joint that it did not find the coordinates (0, 0).
  bool is_absent() const { return x <= 0 && y <= 0; }
};

/// OpenPose's 18 joints (its COCO model), left and right from the person's view: 0 nose, 1 neck,
/// 2-4 right shoulder, elbow, wrist, 5-7 the same on the left, 8-10 right hip, knee, ankle, 11-13
/// the same on the left, 14 right eye, 15 left eye, 16 right ear, 17 left ear.
using Joints = std::array<Joint, 18>;

/// The largest side of an image in pixels.
inline constexpr int64_t kMostStickmanSize = 4096;

/// Sizes in pixels, regardless of the image's size. The defaults are VUNet's at 256 x 256.
struct StickmanStyle {
  double line_width = 4;
  double joint_radius = 3;
};

/// Declares the style as `line_width` and `joint_radius` of a dataset; `style` has the defaults.
void declare_stickman_style(Parameters& p, StickmanStyle& style);

/// Draws the joints of a model, as many as it has, as the pose input of VUNet (Esser, Sutter,
/// Ommer, CVPR 2018): float [3, size, size] in [-1, 1], black with, one over the other,
///
/// 1. the body in green: with `openpose_18` the polygon of neck, right shoulder, right hip, left
///    hip, left shoulder;
/// 2. lines of `line_width`: red for arm, flank and leg of the person's right, which is the image's
///    left if the person faces the viewer; green from ear to eye to nose on both sides and from the
///    nose to the neck; blue for the person's left;
/// 3. the ends of these lines in the same colours, discs of `joint_radius` around a pixel's centre:
///    a radius of 3 makes discs 7 pixels wide.
///
/// There is no anti-aliasing: a pixel is painted when its centre is in a shape or on its edge;
/// coordinates and radii are rounded to 16ths of a pixel. An absent joint is left out with its
/// lines and its corner of the body; shapes are cut off at the image's edge. The pixels are the
/// same on every machine. Throws Error for a joint that is not a number, or that is more than 8192
/// pixels away.
at::Tensor draw_stickman(std::span<const Joint> joints, int64_t size,
                         const StickmanStyle& style = {},
                         const KeypointModel& model = openpose_18());

/// The same, written as 3 * size * size numbers.
void draw_stickman(std::span<const Joint> joints, int64_t size, const StickmanStyle& style,
                   const KeypointModel& model, float* values);

}  // namespace stepop::vunet
