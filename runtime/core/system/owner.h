#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace stepop {

/// Why what is at `path` may be somebody else's work: it belongs to another user than this process
/// or root, or others can write it. Empty when it is one's own, and when nothing is there. A link
/// is followed.
std::string foreign_reason(const std::string& path);

/// The user who made the symbolic link `path`, or to whom belongs what it leads to, when that is
/// another than the user of this process and root.
std::optional<uint32_t> user_behind_link(const std::string& path);

/// Makes a folder that only this user can enter; one that is there and is one's own is closed to
/// writing by others. Throws Error, with what helps, when it stays somebody else's.
void make_private_folder(const std::string& path);

}  // namespace stepop
