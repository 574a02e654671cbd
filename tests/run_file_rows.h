#pragma once

#include <fnmatch.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "runtime/train/run/run_files.h"

namespace stepop {

/// With `*` for each part in angle brackets, and without a slash at the end.
inline std::string glob_of(std::string_view path) {
  std::string glob;
  bool is_in_brackets = false;
  for (const char c : path) {
    if (c == '<') glob += '*';
    is_in_brackets = (is_in_brackets || c == '<') && c != '>';
    if (!is_in_brackets && c != '>') glob += c;
  }
  if (glob.ends_with('/')) glob.pop_back();
  return glob;
}

/// The row for the file at `path`, relative to the run's folder; null for a file of somebody else.
inline const RunFile* find_run_file(const std::string& path) {
  const auto found = std::ranges::find_if(run_files(), [&](const RunFile& row) {
    const int flags = FNM_PATHNAME | (row.path.ends_with('/') ? FNM_LEADING_DIR : 0);
    return ::fnmatch(glob_of(row.path).c_str(), path.c_str(), flags) == 0;
  });
  return found == run_files().end() ? nullptr : &*found;
}

}  // namespace stepop
