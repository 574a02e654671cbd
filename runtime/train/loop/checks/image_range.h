#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace stepop {

/// A warning, or nothing, about logged images on the CPU whose numbers are far outside of [-1, 1],
/// which is black to white: `name` is theirs. A little more is usual for what a network computes.
std::string image_range_warning(const std::string& name, const at::Tensor& images);

}  // namespace stepop
