#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string>

#include "eval_out/hdf5/hdf5.h"

namespace stepop {

/// The type that a tensor's elements are stored in: bfloat16 and the 8-bit floats become float32,
/// which holds all their values; others stay. Empty for a type that has no place in the file
/// (quantized ones).
std::optional<at::ScalarType> stored_type(at::ScalarType type);

/// The HDF5 type of a stored type, in the file and in memory: little endian; bool is an enum and
/// complex a compound of `r` and `i`, as h5py writes and reads them.
Hdf5Id hdf5_type(at::ScalarType type);

/// Variable-length UTF-8 text.
Hdf5Id hdf5_text_type();

/// Whether a type is text of variable length. Throws Error for a damaged one whose characters are
/// longer than a byte: the library would take so much memory for each of them.
bool is_variable_text(hid_t type);

/// The tensor type that holds what an HDF5 type does; empty for types that no tensor has.
std::optional<at::ScalarType> tensor_type(hid_t type);

}  // namespace stepop
