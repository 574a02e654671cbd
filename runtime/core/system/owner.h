#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace stepop {

/// Why the file or folder at `path` may be another user's work: its owner is neither this process's
/// user nor root, or others can write it. Empty when it is your own, or does not exist. Links are
/// followed.
std::string foreign_reason(const std::string& path);

/// The user who made the symbolic link `path`, or who owns its target, if that user is neither this
/// process's user nor root.
std::optional<uint32_t> user_behind_link(const std::string& path);

/// Makes a folder that only this user can enter; removes other users' write permission from your
/// own existing folder. Throws Error, with advice, when the folder belongs to another user.
void make_private_folder(const std::string& path);

}  // namespace stepop
