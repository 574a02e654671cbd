#pragma once

#include <string>
#include <vector>

namespace stepop {

/// Makes the folder `path`, and missing folders above it, so that it survives a power cut. Does
/// nothing for an existing folder. Throws Error `cannot make the folder <path>: <reason>`.
void make_folders(const std::string& path);

/// Removes the temporary files that killed processes left in `folder` and below it: the `*.tmp`
/// files of AtomicFile and of link_into_place. A file that a living process is writing, and a file
/// that cannot be removed, stay. Returns the paths that were removed, relative to `folder`, sorted.
std::vector<std::string> sweep_temporaries(const std::string& folder);

}  // namespace stepop
