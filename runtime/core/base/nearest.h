#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepop {

/// The edit distance of two texts: insertions, deletions, substitutions and swaps of neighbours
/// cost 1 each (Damerau-Levenshtein, optimal string alignment); upper and lower case are equal.
int edit_distance(std::string_view a, std::string_view b);

/// At most `count` of `names` that look like `name`, nearest first; none when no name is near.
std::vector<std::string> nearest_names(std::string_view name, const std::vector<std::string>& names,
                                       size_t count);

/// The same for slash-separated paths, key by key: finds a misspelt key next to `path`, or the same
/// key in another place, but not another short key below a long parent.
std::vector<std::string> nearest_paths(const std::string& path,
                                       const std::vector<std::string>& paths, size_t count);

/// All of `names` sorted by their distance to `name`, nearest first.
std::vector<std::string> sorted_by_distance(std::string_view name, std::vector<std::string> names);

}  // namespace stepop
