#include "runtime/tools/report/page.h"

#include <algorithm>
#include <array>

#include "runtime/core/base/shown_text.h"

namespace stepop {
namespace {

/// JSON for a <script>: `<` occurs only in texts, where `\u003c` is the same.
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

std::string html_page(const std::vector<std::string_view>& names, const std::string& data,
                      const std::string& title) {
  // Only this script asks for anything.
  const bool is_live = std::find(names.begin(), names.end(), "live.js") != names.end();
  std::string scripts;
  for (const std::string_view name : names) scripts += page_file(name);
  const std::string json = without_tags(shown_json(data));
  const std::string title_text = escaped(shown_text(title));
  struct Place {
    std::string_view mark;
    std::string_view text;
  };
  const std::array<Place, 5> places = {{{"{{connect}}", is_live ? "; connect-src 'self'" : ""},
                                        {"{{title}}", title_text},
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

}  // namespace stepop
