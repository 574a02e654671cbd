#include "runtime/run/run_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/config/resolve.h"
#include "runtime/error.h"
#include "runtime/log/metrics_scan.h"
#include "runtime/run/run_directory.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

constexpr uintmax_t kMostMetricsBytes = 4'000'000;
constexpr const char* kDebugRuns = "debug_runs";

std::string text_at(const Value& config, const char* path) {
  const Value* value = config.find(path);
  return value != nullptr && value->is_text() ? value->as_text() : "";
}

std::optional<double> number_at(const Value& config, const char* path) {
  const Value* value = config.find(path);
  if (value == nullptr) return std::nullopt;
  if (value->is_int()) return static_cast<double>(value->as_int());
  return value->is_float() ? std::optional(value->as_float()) : std::nullopt;
}

/// The config's metric; `mode` is empty when it names none.
struct Metric {
  std::string name;
  std::string mode;
};

Metric metric_of(const Value& config) {
  for (const std::string part : {"checkpoints", "stop_when"}) {
    const std::string name = text_at(config, (part + "/metric").c_str());
    if (!name.empty()) return {name, text_at(config, (part + "/mode").c_str())};
  }
  return {};
}

/// The first number of the newest evaluation in these lines, else of the last line.
std::string any_metric(const std::vector<MetricsLine>& lines) {
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    for (const auto& [name, value] : line->values) {
      if (name.find("/eval_op/") != std::string::npos) return name;
    }
  }
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (!line->values.empty()) return line->values.begin()->first;
  }
  return "";
}

std::optional<double> last_value(const std::vector<MetricsLine>& lines, const std::string& name) {
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (const double* value = line->values.find(name)) return *value;
  }
  return std::nullopt;
}

std::vector<MetricsLine> last_metrics(const std::string& path) {
  std::vector<MetricsLine> lines;
  try {
    for (const auto& text : last_lines(path)) {
      if (auto line = parse_metrics_line(text)) lines.push_back(std::move(*line));
    }
  } catch (const Error&) {
    lines.clear();
  }
  return lines;
}

/// The metric of an evaluation at `step`, by what it left in its folder.
std::optional<double> value_of_evaluation(const RunDirectory& run, int64_t step,
                                          const std::string& name) {
  std::error_code failed;
  for (const auto& start : fs::directory_iterator(run.root() + "/eval", failed)) {
    try {
      const std::string path = fmt::format("{}/{}/scalars.json", start.path().string(), step);
      if (!fs::exists(path, failed)) continue;
      const OrderedMap<double> scalars = read_scalars(path);
      if (const double* value = scalars.find(name)) return *value;
    } catch (const Error&) {
    }
  }
  return std::nullopt;
}

std::optional<double> best_value(const RunDirectory& run, const Metric& metric) {
  if (const auto best = CheckpointFolder(run.checkpoints()).best()) {
    const auto value = value_of_evaluation(run, *best, metric.name);
    if (value) return value;
  }
  std::error_code failed;
  const uintmax_t bytes = fs::file_size(run.metrics_file(), failed);
  if (failed || bytes > kMostMetricsBytes) return std::nullopt;
  std::optional<double> best;
  scan_metrics(run.metrics_file(), [&](const MetricsLine& line) {
    const double* value = line.values.find(metric.name);
    if (value == nullptr || std::isnan(*value)) return;
    const bool is_better = !best || (metric.mode == "max" ? *value > *best : *value < *best);
    if (is_better) best = *value;
  });
  return best;
}

double seconds_since_writing(const RunDirectory& run) {
  double age = std::numeric_limits<double>::infinity();
  for (const auto& path : {run.metrics_file(), run.process_file(), run.log_file(),
                           run.checkpoints(), run.configs(), run.root() + "/eval", run.root()}) {
    std::error_code failed;
    const auto written = fs::last_write_time(path, failed);
    if (failed) continue;
    const std::chrono::duration<double> passed = fs::file_time_type::clock::now() - written;
    age = std::min(age, std::max(passed.count(), 0.0));
  }
  return std::isfinite(age) ? age : 0;
}

void read_config(const RunDirectory& run, RunSummary& summary, Metric& metric) {
  try {
    const Value config = resolve_config({run.last_config()}, {});
    metric = metric_of(config);
    if (!number_at(config, "num_steps")) summary.num_epochs = number_at(config, "num_epochs");
  } catch (const Error&) {
    metric = {};
  }
}

void read_position(const RunDirectory& run, const std::vector<MetricsLine>& lines,
                   RunSummary& summary) {
  if (!lines.empty()) {
    summary.step = lines.back().event.step;
    summary.epoch = lines.back().event.epoch;
  }
  const std::vector<int64_t> steps = checkpoint_steps(run.checkpoints());
  if (steps.empty() || steps.back() <= summary.step.value_or(-1)) return;
  summary.step = steps.back();
  summary.epoch.reset();
  try {
    const std::string path = CheckpointFolder(run.checkpoints()).path_of(steps.back());
    const Progress progress = read_checkpoint_header(path).progress;
    const auto batches = static_cast<double>(std::max<int64_t>(progress.batches_per_epoch, 1));
    summary.epoch =
        static_cast<double>(progress.epoch) + static_cast<double>(progress.batch) / batches;
  } catch (const Error&) {
    summary.epoch.reset();
  }
}

/// What runs sort by: the time in the name, else that of the last writing.
std::string start_of(const RunSummary& summary) {
  constexpr size_t kTimeLength = 19;  // 2026-11-21T10-00-00
  const std::string name = fs::path(summary.root).filename().string();
  const bool has_time =
      name.size() > kTimeLength && name[kTimeLength] == '_' && name[4] == '-' && name[10] == 'T';
  if (has_time) return name.substr(0, kTimeLength);
  const auto written = std::chrono::system_clock::now() -
                       std::chrono::duration_cast<std::chrono::system_clock::duration>(
                           std::chrono::duration<double>(summary.age));
  const std::time_t time = std::chrono::system_clock::to_time_t(written);
  std::tm parts{};
  localtime_r(&time, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H-%M-%S", &parts)};
}

void add_runs(const std::string& folder, const std::string& prefix, std::vector<RunSummary>& runs) {
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    // One that begins with a dot is being made at this moment, or was left behind then.
    if (name.starts_with('.') || !is_run(entry->path().string())) continue;
    const std::string root = entry->path().string();
    try {
      runs.push_back(summarize_run(root));
    } catch (const std::exception&) {  // such as a folder that may not be read
      runs.emplace_back();
      runs.back().root = root;
    }
    runs.back().name = prefix + name;
  }
  if (failed) throw Error(fmt::format("cannot read {}: {}", folder, failed.message()));
}

}  // namespace

bool is_run(const std::string& root) {
  std::error_code failed;
  return fs::is_directory(root + "/configs", failed) || fs::is_directory(root + "/train", failed);
}

RunSummary summarize_run(const std::string& root) {
  const RunDirectory run = RunDirectory::at(root);
  RunSummary summary;
  summary.root = run.root();
  summary.name = run.folder_name();
  summary.status = read_run_status(run.process_file());
  summary.age = seconds_since_writing(run);
  Metric metric;
  read_config(run, summary, metric);
  const std::vector<MetricsLine> lines = last_metrics(run.metrics_file());
  read_position(run, lines, summary);
  summary.metric = metric.name.empty() ? any_metric(lines) : metric.name;
  summary.last = last_value(lines, summary.metric);
  const bool has_best = metric.mode == "max" || metric.mode == "min";
  if (has_best) summary.best = best_value(run, metric);
  return summary;
}

std::vector<RunSummary> list_runs(const std::string& logs, bool with_debug) {
  std::vector<RunSummary> runs;
  add_runs(logs, "", runs);
  const std::string debug = logs + "/" + kDebugRuns;
  if (with_debug && fs::is_directory(debug)) add_runs(debug, std::string(kDebugRuns) + "/", runs);
  std::vector<std::pair<std::string, size_t>> order;
  for (size_t i = 0; i < runs.size(); ++i) order.emplace_back(start_of(runs[i]) + runs[i].name, i);
  std::sort(order.rbegin(), order.rend());
  std::vector<RunSummary> sorted;
  for (const auto& [start, i] : order) sorted.push_back(std::move(runs[i]));
  return sorted;
}

}  // namespace stepop
