#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace stepop {

/// Reads a file in MNIST's IDX format (http://yann.lecun.com/exdb/mnist), plain or gzip. Returns a
/// CPU tensor of the shape and type in the header (uint8, int8, int16, int32, float32 or float64);
/// the file stores the most significant byte first.
///
/// Throws Error with the path when the file cannot be read, is no IDX, or is shorter or longer than
/// its header requires.
at::Tensor read_idx(const std::string& path);

}  // namespace stepop
