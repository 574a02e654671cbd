#pragma once

#include <string>

namespace stepop {

/// Gives the finished file `part` its real name so that it survives a power cut: fsync of the file,
/// rename to `path` (replacing what is there), fsync of the folder. Both must be in one folder.
/// Throws Error with the path and the reason; `path` is then as it was.
void publish_file(const std::string& part, const std::string& path);

}  // namespace stepop
