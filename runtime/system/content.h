#pragma once

#include <optional>
#include <string>

namespace stepop {

/// All bytes of a file, or none for one that cannot be read.
std::optional<std::string> read_content(const std::string& path);

/// The checksum of bytes, or of a file's; a file that cannot be read has that of no bytes.
std::string content_checksum(const std::string& bytes);
std::string file_checksum(const std::string& path);

}  // namespace stepop
