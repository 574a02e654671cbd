#pragma once

#include <string>
#include <vector>

#include "runtime/data/datasets/left_out.h"

namespace stepop {

/// Expands a pattern with braces: `a-{000..002}.tar` gives three names, with the same number of
/// digits, and `{train,extra}.tar` gives two; several pairs of braces give all combinations. A name
/// without braces is returned unchanged. Throws Error for invalid braces, and for more than a
/// million names.
std::vector<std::string> expand_braces(const std::string& pattern);

/// The files of `path`: all .tar, .tar.gz and .tgz files of a folder, sorted by name, or the files
/// of a pattern. Other files of a folder are added to `left_out`. Throws Error when a file is
/// missing, or when there are no files.
std::vector<std::string> list_shards(const std::string& path, LeftOut& left_out);

/// The folder of the shards of `path`, or `path` itself when it is a single file.
std::string place_of_shards(const std::string& path);

}  // namespace stepop
