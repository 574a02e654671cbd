#include "runtime/tools/report/report.h"

#include <string_view>
#include <vector>

#include "runtime/core/system/atomic_file.h"
#include "runtime/tools/report/page.h"

namespace stepop {

std::string report_page(const std::string& data, const std::string& title, bool is_live) {
  std::vector<std::string_view> scripts = {"elements.js", "chart.js", "curves.js", "frames.js",
                                           "page.js"};
  if (is_live) scripts.push_back("live.js");
  return html_page(scripts, data, title);
}

void write_report(const RunDirectory& run, const std::string& path, const ReportOptions& options) {
  write_file_atomically(path, report_page(report_data(run, options), run.folder_name()));
}

}  // namespace stepop
