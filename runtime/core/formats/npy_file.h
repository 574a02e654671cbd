#pragma once

#include <map>
#include <string>
#include <string_view>

#include "runtime/core/formats/stored_array.h"

namespace stepop {

/// The array in a file of NumPy's format `.npy`, versions 1 to 3, mapped: its rows are read when
/// they are asked for. Throws Error with the path for a file that is no such file, is cut short, or
/// has elements that no tensor holds.
StoredArray open_npy(const std::string& path);

/// The same for bytes in memory; `name` is what messages begin with.
StoredArray parse_npy(std::string bytes, const std::string& name);

/// The arrays in a file of `np.savez` or `np.savez_compressed`, by name. Those that are not packed
/// are mapped, the others are in memory. The whole file is read once, to compare its checksums.
/// What is no array is left out. Throws Error with the path and the array.
std::map<std::string, StoredArray> open_npz(const std::string& path);

/// Whether bytes begin as an `.npy` does.
bool is_npy(std::string_view bytes);

/// The head of an `.npy` file of such an array: what stands before its bytes.
std::string npy_head(const std::string& descr, const std::vector<int64_t>& shape);

}  // namespace stepop
