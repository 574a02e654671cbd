#include "runtime/report/report.h"

#include <array>
#include <string_view>

#include "runtime/report/page.h"
#include "runtime/system/atomic_file.h"

namespace stepop {
namespace {

/// JSON that may stand in a <script>: `<` is only within texts, and `\u003c` is the same there.
std::string without_tags(std::string_view json) {
  std::string text;
  text.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

std::string escaped(std::string_view text) {
  std::string html;
  for (const char c : text) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

}  // namespace

std::string report_page(const std::string& data, const std::string& title) {
  std::string scripts;
  for (const char* name : {"elements.js", "chart.js", "curves.js", "frames.js", "page.js"}) {
    scripts += page_file(name);
  }
  const std::string json = without_tags(data);
  const std::string title_text = escaped(title);
  struct Place {
    std::string_view mark;
    std::string_view text;
  };
  const std::array<Place, 4> places = {{{"{{title}}", title_text},
                                        {"{{style}}", page_file("report.css")},
                                        {"{{data}}", json},
                                        {"{{scripts}}", scripts}}};
  std::string page;
  std::string_view rest = page_file("report.html");
  for (const auto& [mark, text] : places) {  // in the order of the page
    const size_t at = rest.find(mark);
    page.append(rest.substr(0, at)).append(text);
    rest.remove_prefix(at + mark.size());
  }
  return page.append(rest);
}

void write_report(const RunDirectory& run, const std::string& path, const ReportOptions& options) {
  write_file_atomically(path, report_page(report_data(run, options), run.folder_name()));
}

}  // namespace stepop
