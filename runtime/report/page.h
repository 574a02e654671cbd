#pragma once

#include <string_view>

namespace stepop {

/// A file of runtime/report/page/, which the build compiles in: `page_file("report.css")`. Empty
/// for a name that is none.
std::string_view page_file(std::string_view name);

}  // namespace stepop
