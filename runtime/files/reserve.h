#pragma once

#include <string>

namespace stepop {

/// Gives every byte of a file that has holes its place on the disk, so that writing into them
/// cannot find the disk full later. Throws Error `cannot reserve the <n> MB of <path>: <reason>`
/// when there is no room; does nothing on a file system that cannot reserve.
void reserve_space(const std::string& path);

}  // namespace stepop
