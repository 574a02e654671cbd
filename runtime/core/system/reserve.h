#pragma once

#include <cstdint>
#include <string>

namespace stepop {

/// Reserves disk space for the bytes `begin` to `end` of a file, so that writing them cannot fail
/// on a full disk. The file gets at least the length `end`, with zeros where nothing was written.
/// On a file system that cannot reserve space, existing holes in the file stay.
///
/// Throws Error `cannot reserve <size> in <path>: <reason>` when there is no room; the file then
/// has its old length.
void reserve_space(const std::string& path, int64_t begin, int64_t end);

/// Cuts a file at `end`; throws Error when that fails.
void release_space(const std::string& path, int64_t end);

}  // namespace stepop
