#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string>

#include "eval_out/hdf5/hdf5.h"

namespace stepop {

/// The type in which a tensor's elements are stored: bfloat16 and the 8-bit floats become float32,
/// which holds all their values; other types are unchanged. Empty for a type that cannot be stored
/// (quantized types).
std::optional<at::ScalarType> stored_type(at::ScalarType type);

/// The HDF5 type of a stored type, in the file and in memory: little endian; bool is an enum and
/// complex a compound of `r` and `i`, as h5py writes and reads them.
Hdf5Id hdf5_type(at::ScalarType type);

/// Variable-length UTF-8 text.
Hdf5Id hdf5_text_type();

/// Whether a type is text of variable length. Throws Error for a damaged type whose characters are
/// longer than a byte: the library would allocate that much memory for each character.
bool is_variable_text(hid_t type);

/// The tensor type for the values of an HDF5 type; empty when there is none.
std::optional<at::ScalarType> tensor_type(hid_t type);

}  // namespace stepop
