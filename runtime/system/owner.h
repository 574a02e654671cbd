#pragma once

#include <string>

namespace stepop {

/// Why what is at `path` may be somebody else's work: it belongs to another user than this process
/// or root, or others can write it. Empty when it is one's own, and when nothing is there. A link
/// is followed.
std::string foreign_reason(const std::string& path);

/// Makes a folder that only this user can enter; one that is there and is one's own is closed to
/// writing by others. Throws Error, with what helps, when it stays somebody else's.
void make_private_folder(const std::string& path);

}  // namespace stepop
