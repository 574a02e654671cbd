#include "runtime/train/when/logged_metric.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/base/nearest.h"
#include "runtime/core/base/text.h"

namespace stepop {
namespace {

/// The name that was probably meant; empty when no name is near.
std::string nearest_name(const std::string& metric, const LoggedNames& names) {
  std::vector<std::string> candidates = names.known;
  // A callback's metrics are unknown before it ran, but its name is known.
  const size_t slash = metric.rfind('/');
  if (slash != std::string::npos) {
    for (const auto& place : nearest_paths(metric.substr(0, slash), names.open, 1)) {
      candidates.push_back(place + metric.substr(slash));
    }
  }
  const auto nearest = nearest_paths(metric, candidates, 1);
  return nearest.empty() ? "" : nearest.front();
}

}  // namespace

void check_is_logged(const Config& config, const std::string& path, const std::string& metric,
                     const LoggedNames& names) {
  const auto& known = names.known;
  if (known.empty() || std::find(known.begin(), known.end(), metric) != known.end()) return;
  for (const auto& place : names.open) {
    if (metric.starts_with(place + "/")) return;
  }
  const std::string nearest = nearest_name(metric, names);
  const std::string help = nearest.empty() ? "; there are: " + list_text(known)
                                           : fmt::format("; did you mean \"{}\"?", nearest);
  const std::string key = config.path().empty() ? path : config.path() + "/" + path;
  throw UnknownMetric(
      config.error(path,
                   fmt::format("no log and no evaluation gives a number \"{}\"{}", metric, help)),
      fmt::format("--{} {}", key, nearest.empty() ? "NAME" : nearest));
}

}  // namespace stepop
