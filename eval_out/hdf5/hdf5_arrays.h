#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eval_out/hdf5/hdf5.h"

namespace stepop {

// Arrays of rows in an open HDF5 file. All functions need a Hdf5Lock, and throw Error with the
// library's reason.

/// The properties of a link whose parent groups are created as needed; its name is UTF-8.
Hdf5Id link_properties();

/// The properties of an array whose space is allocated at once. With H5D_FILL_TIME_NEVER the
/// numbers are not initialized: the file is sparse where nothing is written.
Hdf5Id creation_properties(H5D_fill_time_t fill_time);

Hdf5Id create_dataset(hid_t parent, const std::string& name, hid_t type, hid_t space,
                      hid_t creation, hid_t access = H5P_DEFAULT);
Hdf5Id open_dataset(hid_t parent, const std::string& name, hid_t access = H5P_DEFAULT);

/// [first, ...rest]
std::vector<hsize_t> lengths_of(int64_t first, const std::vector<int64_t>& rest);

/// Writes a block of `lengths` that begins at row `first`; does nothing when a length is 0.
void write_rows(hid_t dataset, hid_t type, int64_t first, const std::vector<hsize_t>& lengths,
                const void* data);

/// Whether the array is stored in chunks rather than in one piece.
bool is_chunked(hid_t dataset);

/// The lengths of a chunk, one for each dimension of the array.
std::vector<hsize_t> chunk_lengths(hid_t dataset);

/// Creates an array of `count` int64 numbers, with all space allocated at once.
Hdf5Id create_numbers(hid_t parent, const std::string& name, int64_t count);
void write_numbers(hid_t dataset, int64_t first, const std::vector<int64_t>& numbers);

}  // namespace stepop
