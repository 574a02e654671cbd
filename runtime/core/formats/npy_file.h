#pragma once

#include <map>
#include <string>
#include <string_view>

#include "runtime/core/formats/stored_array.h"

namespace stepop {

/// The array in a file of NumPy's format `.npy`, versions 1 to 3. The file is mapped; rows are read
/// on request. Throws Error with the path for a file that is no `.npy` file, is cut short, or has
/// elements that no tensor can hold.
StoredArray open_npy(const std::string& path);

/// The same for bytes in memory; messages begin with `name`.
StoredArray parse_npy(std::string bytes, const std::string& name);

/// The arrays in a file of `np.savez` or `np.savez_compressed`, by name. Unpacked arrays are
/// mapped, packed arrays are kept in memory. The whole file is read once, to compare its checksums.
/// Entries that are no arrays are left out. Throws Error with the path and the array.
std::map<std::string, StoredArray> open_npz(const std::string& path);

/// Whether bytes begin like an `.npy` file.
bool is_npy(std::string_view bytes);

/// The head of an `.npy` file for such an array: the bytes before the array's own.
std::string npy_head(const std::string& descr, const std::vector<int64_t>& shape);

}  // namespace stepop
