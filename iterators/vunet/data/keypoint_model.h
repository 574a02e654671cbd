#pragma once

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "runtime/core/config/config.h"

namespace stepop::vunet {

/// The keypoints of a pose, and what connects them in its stick figure.
struct KeypointModel {
  using Pairs = std::vector<std::pair<size_t, size_t>>;

  size_t joints = 0;  ///< How many keypoints the data have.
  /// Further joints, numbered from `joints` on, each in the middle of two others; absent where one
  /// of the two is.
  Pairs midpoints;
  std::vector<size_t> body;  ///< The corners of the polygon, in order.
  /// Lines of the person's right side, of its middle and of its left side.
  Pairs right;
  Pairs middle;
  Pairs left;
};

/// OpenPose's 18 keypoints (its COCO model), with which VUNet was published.
const KeypointModel& openpose_18();

/// The model at `keypoint_model` of a dataset's parameters, by default `openpose_18`. `coco_17` are
/// the keypoints of COCO's annotations, to which the neck comes as the middle of both shoulders, as
/// OpenPose makes it; `body_25` are OpenPose's 25. Both give the picture of `openpose_18`, to which
/// `body_25` adds feet. A map is a model of your own: `joints`, and where needed `midpoints`,
/// `body`, `right`, `middle` and `left`. Throws UsageError for a joint that the model does not
/// have.
KeypointModel get_keypoint_model(const Config& params);

}  // namespace stepop::vunet
