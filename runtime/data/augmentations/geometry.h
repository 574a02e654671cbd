#pragma once

#include <cstdint>
#include <optional>

#include "runtime/data/augmentations/augmentation.h"
#include "runtime/data/augmentations/homography.h"
#include "runtime/data/augmentations/warp.h"

namespace stepop {

// Changes of a scene's geometry. Images are interpolated bilinearly, masks take the nearest pixel,
// and boxes become the smallest box around their moved corners, cut at the image's border; a box
// that has left the image keeps its row, with no area. Keypoints may leave the image.

/// What images show where nothing is known: a value, or, without one, the nearest pixel of the
/// border. Masks then have -100, which cross entropy leaves out, or 0 if their type is not int64.
using Fill = std::optional<double>;
/// Declares `fill`: -1 (black, the default) to 1, or `repeat`.
void add_fill(Parameters& p, Fill& fill);

/// Moves what is at `place` to `moved(place)`. The size stays.
void transform(Scene& scene, const Homography& moved, Fill fill);
/// The same for a map of where each pixel comes from; the border is repeated. Where the map folds,
/// a keypoint is the nearest of the places that show it, and a box encloses all of them.
void transform(Scene& scene, const WarpMap& map);
/// Mirrors left and right, or top and bottom.
void mirror(Scene& scene, bool is_horizontal);
/// Turns by `quarters` of a circle, counterclockwise.
void turn_quarters(Scene& scene, int64_t quarters);
/// Resizes images with antialiasing, as Pillow does.
void resize(Scene& scene, int64_t height, int64_t width);
/// Cuts out a part, which may reach beyond the image.
void crop(Scene& scene, int64_t top, int64_t left, int64_t height, int64_t width, Fill fill);

}  // namespace stepop
