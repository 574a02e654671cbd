#pragma once

#include <cstdint>
#include <string>

namespace stepop {

/// Overwrites a part of a file with zeros. Throws Error when the file cannot be written.
void zero_bytes(const std::string& path, int64_t begin, int64_t count);

}  // namespace stepop
