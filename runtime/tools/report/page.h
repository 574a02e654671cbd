#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace stepop {

/// A file of runtime/tools/report/page/, which the build compiles in: `page_file("report.css")`.
/// Empty for a name that is none.
std::string_view page_file(std::string_view name);

/// A page with these scripts and with `data`, JSON, in it; whole: it needs no other file and no
/// network. Its texts are data to the page, never markup.
std::string html_page(std::initializer_list<std::string_view> scripts, const std::string& data,
                      const std::string& title);

}  // namespace stepop
