#include "runtime/core/log/metrics_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>

#include "runtime/core/base/error.h"
#include "runtime/core/base/json_text.h"
#include "runtime/core/base/shown_text.h"
#include "runtime/core/system/append_file.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/read_file.h"

namespace stepop {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// Throws Error for a value that is no number of a metrics file.
double metric_number(const std::string& key, const OrderedJson& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) {
    if (const auto number = non_finite_number(value.get_ref<const std::string&>())) return *number;
  }
  throw Error(
      fmt::format("\"{}\": expected a number, \"NaN\", \"Infinity\" or \"-Infinity\", "
                  "found {}",
                  key, shown_text(write_json(value))));
}

int64_t metric_count(const std::string& key, const OrderedJson& value) {
  const bool is_count =
      value.is_number_integer() && value.get<int64_t>() >= 0;  // numbers that are too large become
                                                               // negative
  if (is_count) return value.get<int64_t>();
  throw Error(
      fmt::format("\"{}\": expected a whole number, found {}", key, shown_text(write_json(value))));
}

/// Throws Error that says what is wrong.
MetricsLine parse_line(std::string_view text) {
  const OrderedJson json = read_ordered_json(text);
  if (!json.is_object()) throw Error("not a JSON object");
  if (!json.contains("step")) throw Error("no \"step\"");
  MetricsLine line;
  for (const auto& [key, value] : json.items()) {
    if (key == "step") {
      line.event.step = metric_count(key, value);
    } else if (key == "epoch") {
      line.event.epoch = metric_number(key, value);
    } else if (key == "samples") {
      line.event.samples = metric_count(key, value);
    } else if (key == "time") {
      line.event.seconds = metric_number(key, value);
    } else {
      line.values.set(key, metric_number(key, value));
    }
  }
  return line;
}

std::ifstream open_lines(const std::string& path) {
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

void append_durably(const std::string& path, std::string_view lines) {
  AppendFile file(path);
  file.append(lines);
  file.sync();
}

}  // namespace

void Metrics::write(const LogEvent& event, const LogRecord& record) {
  if (record.scalars.empty()) return;
  const double epoch = std::round(event.epoch * 1e6) / 1e6;
  const double seconds = std::round(event.seconds * 1e3) / 1e3;
  file_.append(fmt::format("{{\"step\":{},\"epoch\":{},\"samples\":{},\"time\":{},{}\n", event.step,
                           json_number(epoch), event.samples, json_number(seconds),
                           to_json(record.scalars).substr(1)));
}

std::optional<MetricsLine> parse_metrics_line(std::string_view text) {
  try {
    return parse_line(text);
  } catch (const OrderedJson::exception&) {
    return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

int64_t scan_metrics(const std::string& path,
                     const std::function<void(const MetricsLine&)>& visit) {
  std::ifstream file = open_lines(path);
  int64_t skipped = 0;
  for (std::string text; std::getline(file, text);) {
    const bool is_ended = !file.eof();
    if (text.empty()) continue;
    if (const auto line = parse_metrics_line(text)) {
      visit(*line);
    } else if (is_ended) {
      ++skipped;
    }
  }
  return skipped;
}

void scan_metric(const std::string& path, const std::string& metric,
                 const std::function<void(int64_t step, double value)>& visit) {
  // Another writer may escape any letter.
  const std::string key = "\"" + metric + "\"";
  std::ifstream file = open_lines(path);
  for (std::string text; std::getline(file, text);) {
    const bool may_hold_it =
        text.find(key) != std::string::npos || text.find('\\') != std::string::npos;
    const auto line = may_hold_it ? parse_metrics_line(text) : std::nullopt;
    const double* value = line ? line->values.find(metric) : nullptr;
    if (value != nullptr) visit(line->event.step, *value);
  }
}

std::vector<std::string> last_lines(const std::string& path, int64_t bytes) {
  std::ifstream file = open_lines(path);
  file.seekg(0, std::ios::end);
  const auto size = static_cast<int64_t>(file.tellg());
  for (;; bytes *= 4) {
    const int64_t begin = std::max<int64_t>(size - bytes, 0);
    std::string text(static_cast<size_t>(size - begin), '\0');
    file.clear();
    file.seekg(begin);
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(file.gcount()));
    // The first line may be incomplete.
    size_t at = begin > 0 ? std::min(text.find('\n'), text.size() - 1) + 1 : 0;
    std::vector<std::string> lines;
    for (size_t end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
      if (end > at) lines.push_back(text.substr(at, end - at));
    }
    if (!lines.empty() || begin == 0) return lines;
  }
}

MetricsSplit split_metrics(const std::string& path, int64_t step,
                           const std::string& superseded_path) {
  MetricsSplit split;
  std::error_code failed;
  if (!std::filesystem::exists(path, failed) && !failed) return split;
  const std::string text = read_file(path);
  std::string kept;
  std::string moved;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    const bool is_ended = end != std::string_view::npos;
    rest.remove_prefix(is_ended ? end + 1 : rest.size());
    const auto parsed = parse_metrics_line(line);
    if (!is_ended) {
      split.last_line = parsed ? MetricsSplit::LastLine::kEnded : MetricsSplit::LastLine::kDropped;
      if (!parsed) break;
    }
    const bool is_empty = line.empty();
    const bool is_kept = is_empty || (parsed && parsed->event.step <= step);
    (is_kept ? kept : moved).append(line).append("\n");
    if (is_empty) continue;
    ++(is_kept ? split.kept : split.moved);
    if (!parsed) ++split.broken;
  }
  if (kept == text) return split;
  if (!moved.empty()) append_durably(superseded_path, moved);
  write_file_atomically(path, kept);
  return split;
}

std::string to_json(const OrderedMap<double>& values) {
  std::string json;
  for (const auto& [key, value] : values) {
    json += fmt::format("{}{}:{}", json.empty() ? "{" : ",", json_text(key), json_number(value));
  }
  return json.empty() ? "{}" : json + "}";
}

OrderedMap<double> scalars_from_json(const std::string& text) {
  try {
    const OrderedJson json = read_ordered_json(text);
    if (!json.is_object()) throw Error("not a JSON object");
    OrderedMap<double> scalars;
    for (const auto& [key, value] : json.items()) scalars.set(key, metric_number(key, value));
    return scalars;
  } catch (const OrderedJson::exception&) {
    throw Error("not JSON");
  }
}

OrderedMap<double> read_scalars_file(const std::string& path) {
  const std::string text = read_file(path);
  try {
    return scalars_from_json(text);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace stepop
