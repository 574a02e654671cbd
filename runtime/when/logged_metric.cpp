#include "runtime/when/logged_metric.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/nearest.h"
#include "runtime/base/text.h"

namespace stepop {

void check_is_logged(const Config& config, const std::string& path, const std::string& metric,
                     const std::vector<std::string>& known,
                     const std::vector<std::string>& to_come) {
  if (known.empty() || std::find(known.begin(), known.end(), metric) != known.end()) return;
  for (const auto& op : to_come) {
    if (metric.starts_with(op + "/")) return;
  }
  const auto nearest = nearest_paths(metric, known, 1);
  const std::string help = nearest.empty() ? "; there are: " + list_text(known)
                                           : fmt::format("; did you mean \"{}\"?", nearest.front());
  throw config.error(path,
                     fmt::format("no log and no evaluation gave a number \"{}\"{}", metric, help));
}

}  // namespace stepop
