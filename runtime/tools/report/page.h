#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace stepop {

/// A file in runtime/tools/report/page/, compiled into the program: `page_file("report.css")`.
/// Empty for an unknown name.
std::string_view page_file(std::string_view name);

/// A complete page with these scripts and with `data`, JSON: it needs no other file and no network.
/// Its texts are data, never markup.
std::string html_page(std::initializer_list<std::string_view> scripts, const std::string& data,
                      const std::string& title);

}  // namespace stepop
