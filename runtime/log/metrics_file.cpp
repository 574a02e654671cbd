#include "runtime/log/metrics_file.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/log/plain_line.h"
#include "runtime/system/append_file.h"
#include "runtime/system/atomic_file.h"
#include "runtime/system/read_file.h"

namespace stepop {
namespace {

using Json = nlohmann::ordered_json;

/// A line without its end.
struct Line {
  std::string_view text;
  bool is_ended = true;
};

std::vector<Line> split_lines(std::string_view text) {
  std::vector<Line> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back({text.substr(0, end), end != std::string_view::npos});
    text.remove_prefix(lines.back().is_ended ? end + 1 : text.size());
  }
  return lines;
}

double number(const std::string& key, const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) {
    if (const auto number = non_finite_number(value.get_ref<const std::string&>())) return *number;
  }
  throw Error(
      fmt::format("\"{}\": expected a number, \"NaN\", \"Infinity\" or \"-Infinity\", "
                  "found {}",
                  key, value.dump(-1, ' ', true)));
}

int64_t count(const std::string& key, const Json& value) {
  const bool is_count =
      value.is_number_integer() && value.get<int64_t>() >= 0;  // what is too large gets negative
  if (is_count) return value.get<int64_t>();
  throw Error(
      fmt::format("\"{}\": expected a whole number, found {}", key, value.dump(-1, ' ', true)));
}

/// Throws Error with what is wrong.
MetricsLine parse_line(std::string_view text) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::exception&) {
    throw Error("not JSON");
  }
  if (!json.is_object()) throw Error("not a JSON object");
  if (!json.contains("step")) throw Error("no \"step\"");
  MetricsLine line;
  for (const auto& [key, value] : json.items()) {
    if (key == "step") {
      line.event.step = count(key, value);
    } else if (key == "epoch") {
      line.event.epoch = number(key, value);
    } else if (key == "samples") {
      line.event.samples = count(key, value);
    } else if (key == "time") {
      line.event.seconds = number(key, value);
    } else {
      line.values.set(key, number(key, value));
    }
  }
  return line;
}

std::optional<int64_t> step_of(std::string_view text) {
  if (const auto step = step_of_plain_line(text)) return step;
  const auto line = parse_metrics_line(text);
  return line ? std::optional(line->event.step) : std::nullopt;
}

void append_durably(const std::string& path, std::string_view lines) {
  AppendFile file(path);
  file.append(lines);
  file.sync();
}

}  // namespace

MetricsFile read_metrics(const std::string& path) {
  const std::string text = read_file(path);
  MetricsFile metrics;
  int64_t line_number = 0;
  for (const auto& line : split_lines(text)) {
    ++line_number;
    if (line.text.empty()) continue;
    try {
      metrics.lines.push_back(parse_line(line.text));
    } catch (const Error& error) {
      if (!line.is_ended) continue;
      metrics.problems.push_back(fmt::format("{}:{}: {}", path, line_number, error.what()));
    }
  }
  return metrics;
}

std::optional<MetricsLine> parse_metrics_line(std::string_view text) {
  try {
    return parse_line(text);
  } catch (const Error&) {
    return std::nullopt;
  }
}

OrderedMap<double> read_scalars(const std::string& path) {
  const std::string text = read_file(path);
  try {
    const Json json = Json::parse(text);
    if (!json.is_object()) throw Error("not a JSON object");
    OrderedMap<double> scalars;
    for (const auto& [key, value] : json.items()) scalars.set(key, number(key, value));
    return scalars;
  } catch (const Json::exception&) {
    throw Error(fmt::format("{}: not JSON", path));
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", path, error.what()));
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
  for (const auto& line : split_lines(text)) {
    const std::optional<int64_t> line_step = step_of(line.text);
    if (!line.is_ended) {
      split.last_line =
          line_step ? MetricsSplit::LastLine::kEnded : MetricsSplit::LastLine::kDropped;
      if (!line_step) break;
    }
    const bool is_empty = line.text.empty();
    const bool is_kept = is_empty || (line_step && *line_step <= step);
    (is_kept ? kept : moved).append(line.text).append("\n");
    if (is_empty) continue;
    ++(is_kept ? split.kept : split.moved);
    if (!line_step) ++split.broken;
  }
  if (kept == text) return split;
  if (!moved.empty()) append_durably(superseded_path, moved);
  write_file_atomically(path, kept);
  return split;
}

}  // namespace stepop
