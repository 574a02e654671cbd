#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepop {

/// A file in runtime/tools/report/page/, compiled into the program: `page_file("report.css")`.
/// Empty for an unknown name.
std::string_view page_file(std::string_view name);

/// A complete page with these scripts and with `data`, JSON: it needs no other file and no network,
/// except that `live.js` asks the server of the page for its data. Its texts are data, never
/// markup.
std::string html_page(const std::vector<std::string_view>& scripts, const std::string& data,
                      const std::string& title);

}  // namespace stepop
