#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace stepop {

/// Reads any number of bytes.
inline constexpr int64_t kNoSizeLimit = std::numeric_limits<int64_t>::max();

/// All bytes of a file, also of a pipe or a file of /proc. Throws Error `cannot read <path>: <the
/// system's reason>`, also for a folder, and for a file of more than `most_bytes`, before more
/// bytes than that are in memory; and for a FIFO that no program opens to write for some seconds.
std::string read_file(const std::string& path, int64_t most_bytes = kNoSizeLimit);

/// The same, but nothing for a file that cannot be read.
std::optional<std::string> try_read_file(const std::string& path,
                                         int64_t most_bytes = kNoSizeLimit);

}  // namespace stepop
