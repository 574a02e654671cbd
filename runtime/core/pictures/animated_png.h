#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace stepop {

inline constexpr double kMostFramesPerSecond = 1000;

/// The bytes of an animated PNG, which plays again and again: browsers and most viewers show it
/// moving, any other reader of PNGs shows its first frame. `frames` are uint8 [H, W, C] on the CPU,
/// C = 1 (grey) or 3 (RGB), at least one; grey ones become colour where another is. Throws Error
/// for other shapes, and for frames of different sizes.
std::string encode_animated_png(const std::vector<at::Tensor>& frames, double frames_per_second);

}  // namespace stepop
