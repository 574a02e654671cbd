#include "runtime/core/log/log_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "runtime/core/base/text.h"

namespace stepop {
namespace {

constexpr std::array<std::string_view, 5> kLogKinds = {"scalars", "images", "audio", "texts",
                                                       "histograms"};

}  // namespace

LogKinds::LogKinds(const Config& params) {
  if (!params.has("handlers")) return;
  kinds_ = params.get<std::vector<std::string>>("handlers");
  if (kinds_.empty()) throw params.error("handlers", "expected kinds of logs, found none");
  for (const auto& kind : kinds_) {
    if (std::ranges::find(kLogKinds, kind) != kLogKinds.end()) continue;
    throw params.error("handlers",
                       fmt::format("there are no logs of the kind \"{}\"; there are: {}", kind,
                                   list_text({kLogKinds.begin(), kLogKinds.end()})));
  }
}

void LogKinds::declare(Parameters& p, std::string_view about) {
  const Config* config = p.describe_optional("handlers", "list of text", about);
  if (config != nullptr) *this = LogKinds(*config);
}

bool LogKinds::has(std::string_view kind) const {
  return kinds_.empty() || std::ranges::find(kinds_, kind) != kinds_.end();
}

}  // namespace stepop
