#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace stepop {

/// A warning about logged images on the CPU whose numbers are far outside of [-1, 1] (black to
/// white), or an empty text. `name` is the name of the images. Numbers slightly outside are usual
/// for the output of a network.
std::string image_range_warning(const std::string& name, const at::Tensor& images);

}  // namespace stepop
