#include "runtime/log/metrics_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "runtime/base/error.h"

namespace stepop {
namespace {

std::ifstream open(const std::string& path) {
  const auto fail = [&] {
    throw Error(fmt::format("cannot read {}: {}", path, std::generic_category().message(errno)));
  };
  std::error_code failed;
  errno = std::filesystem::is_directory(path, failed) ? EISDIR : 0;
  if (errno != 0) fail();
  std::ifstream file(path, std::ios::binary);
  if (!file) fail();
  return file;
}

}  // namespace

int64_t scan_metrics(const std::string& path,
                     const std::function<void(const MetricsLine&)>& visit) {
  std::ifstream file = open(path);
  int64_t problems = 0;
  for (std::string text; std::getline(file, text);) {
    const bool is_ended = !file.eof();
    if (text.empty()) continue;
    if (const auto line = parse_metrics_line(text)) {
      visit(*line);
    } else if (is_ended) {
      ++problems;
    }
  }
  return problems;
}

void scan_metric(const std::string& path, const std::string& metric,
                 const std::function<void(int64_t step, double value)>& visit) {
  // Another writer may escape any letter.
  const std::string key = "\"" + metric + "\"";
  std::ifstream file = open(path);
  for (std::string text; std::getline(file, text);) {
    const bool may_hold_it =
        text.find(key) != std::string::npos || text.find('\\') != std::string::npos;
    const auto line = may_hold_it ? parse_metrics_line(text) : std::nullopt;
    const double* value = line ? line->values.find(metric) : nullptr;
    if (value != nullptr) visit(line->event.step, *value);
  }
}

std::vector<std::string> last_lines(const std::string& path, int64_t bytes) {
  std::ifstream file = open(path);
  file.seekg(0, std::ios::end);
  const auto size = static_cast<int64_t>(file.tellg());
  for (;; bytes *= 4) {
    const int64_t begin = std::max<int64_t>(size - bytes, 0);
    std::string text(static_cast<size_t>(size - begin), '\0');
    file.clear();
    file.seekg(begin);
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(file.gcount()));
    // Its first line may be half of one.
    size_t at = begin > 0 ? std::min(text.find('\n'), text.size() - 1) + 1 : 0;
    std::vector<std::string> lines;
    for (size_t end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
      if (end > at) lines.push_back(text.substr(at, end - at));
    }
    if (!lines.empty() || begin == 0) return lines;
  }
}

}  // namespace stepop
