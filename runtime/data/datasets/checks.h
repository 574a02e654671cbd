#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/config/config.h"

namespace stepop {

/// The path at `key`, as Config::get_path; throws UsageError when there is no such file.
std::string get_file(const Config& params, std::string_view key);

/// The same for a folder.
std::string get_folder(const Config& params, std::string_view key);

/// Throws Error unless 0 <= index < size.
void check_index(int64_t index, int64_t size);

}  // namespace stepop
