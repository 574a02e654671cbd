#pragma once

#include <string>
#include <string_view>

namespace stepop {

/// All bytes of a file, unpacked when they are gzip, as their first two bytes show, not the
/// name. Throws Error with the path when the file cannot be read, is cut short or is corrupt.
std::string read_plain_or_gzip(const std::string& path);

/// The unpacked content of gzip data of one or several members. `path` is named in errors.
std::string unpack_gzip(std::string_view packed, const std::string& path);

}  // namespace stepop
