#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

namespace stepop {

/// The array in the bytes of a file of NumPy's format .npy, versions 1 to 3, as a contiguous tensor
/// of its type and shape: bool, uint8, int8 to int64 and float16 to float64, in the byte order of
/// this machine. Throws Error for other types, an array in Fortran's order, and bytes that are no
/// such file or cut short.
at::Tensor decode_npy(std::string_view bytes);

}  // namespace stepop
