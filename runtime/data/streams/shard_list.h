#pragma once

#include <string>
#include <vector>

namespace stepop {

/// What a pattern with braces stands for: `a-{000..002}.tar` for three names, with as many digits,
/// and `{train,extra}.tar` for two; several braces for all combinations. A name without braces is
/// itself. Throws Error for braces that mean nothing, and for more than a million names.
std::vector<std::string> expand_braces(const std::string& pattern);

/// The files of `path`: all .tar, .tar.gz and .tgz of a folder, sorted by name, or those that a
/// pattern stands for. Throws Error when one is missing, or there is none.
std::vector<std::string> list_shards(const std::string& path);

/// The folder that the shards of `path` lie in, or the file itself when it is one.
std::string place_of_shards(const std::string& path);

}  // namespace stepop
