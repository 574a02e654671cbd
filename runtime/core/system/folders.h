#pragma once

#include <string>
#include <vector>

namespace stepop {

/// Makes the folder `path`, with those above it that are missing, so that it survives a power cut.
/// Does nothing for one that is there. Throws Error `cannot make the folder <path>: <reason>`.
void make_folders(const std::string& path);

/// Removes the temporary files that killed processes left in `folder` and below it: those of
/// AtomicFile and of link_into_place, `*.tmp`. One that a living process is writing is left alone,
/// and so is what cannot be removed. Returns the paths that it removed, relative to `folder`,
/// sorted.
std::vector<std::string> sweep_temporaries(const std::string& folder);

}  // namespace stepop
