#pragma once

#include <string>

namespace stepop {

// What a packed file may become in memory. A few kilobytes can claim to hold terabytes: such a file
// is damaged, or made to fill the memory of who reads it.

/// 2 GB, or the environment's STEPOP_UNPACK_LIMIT in bytes. Throws Error for one that is no number.
double unpack_limit();

/// Whether `unpacked` bytes, of which a file stores `stored`, are more than unpack_limit()
/// and more than a hundred times what is stored.
bool is_too_much_unpacked(double unpacked, double stored);

/// What a message says of such a file: what it may be, and how to read it all the same.
std::string unpack_remedy(double unpacked);

}  // namespace stepop
