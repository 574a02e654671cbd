#pragma once

#include <string>

namespace stepop {

// Limits for the size of a packed file in memory. A few kilobytes can claim to hold terabytes: such
// a file is damaged, or made to fill the reader's memory.

/// 2 GB, or the environment's STEPOP_UNPACK_LIMIT in bytes. Throws Error when that is not a number.
double unpack_limit();

/// Whether `unpacked` bytes, stored in `stored` bytes, are more than unpack_limit() and more than a
/// hundred times what is stored.
bool is_too_much_unpacked(double unpacked, double stored);

/// The advice in the message for such a file: what it may be, and how to read it anyway.
std::string unpack_remedy(double unpacked);

}  // namespace stepop
