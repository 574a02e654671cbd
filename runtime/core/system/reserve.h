#pragma once

#include <cstdint>
#include <string>

namespace stepop {

/// Gives the bytes `begin` to `end` of a file their place on the disk, so that writing them cannot
/// find it full. The file gets at least the length `end`, with zeros where nothing was written.
/// On a file system that cannot reserve, holes that are inside the file already stay holes.
///
/// Throws Error `cannot reserve <size> in <path>: <reason>` when there is no room; the file has its
/// old length then.
void reserve_space(const std::string& path, int64_t begin, int64_t end);

/// Cuts off what a file has beyond `end`; throws Error when that fails.
void release_space(const std::string& path, int64_t end);

}  // namespace stepop
