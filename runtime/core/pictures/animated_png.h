#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace stepop {

inline constexpr double kMostFramesPerSecond = 1000;

/// The bytes of an animated PNG, which plays forever: browsers and most viewers show the animation,
/// and any other reader of PNGs shows its first frame. `frames` are at least one uint8 [H, W, C] on
/// the CPU, C = 1 (grey) or 3 (RGB); if any frame has colour, grey frames are converted to colour.
/// Throws Error for other shapes, and for frames of different sizes.
std::string encode_animated_png(const std::vector<at::Tensor>& frames, double frames_per_second);

}  // namespace stepop
