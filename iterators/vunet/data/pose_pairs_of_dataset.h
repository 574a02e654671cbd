#pragma once

#include <memory>

#include "iterators/vunet/data/pose_pairs_params.h"
#include "runtime/core/config/config.h"
#include "runtime/data/dataset.h"

namespace stepop::vunet {

/// PosePairs from another dataset whose examples have an image and its keypoints, such as a Meta
/// folder. Row i is the target of example i; its appearance is another row of the same person.
///
/// `image` is the key of float [C, H, W] in [-1, 1] or of bytes, `keypoints` that of the joints
/// [18, 2 or more], x and y, in pixels of that image or, with `relative: true`, as fractions of its
/// width and height, (0, 0) for an absent joint; `person` is an integer label, by default all rows
/// are of one person.
///
/// An example holds `stickman`, `appearance` and `target`, float [3, size, size] in [-1, 1], and
/// `person`, int64 [], the person's place among all, sorted.
std::unique_ptr<Dataset> pose_pairs_of_dataset(PosePairsParams params, const Config& config);

}  // namespace stepop::vunet
