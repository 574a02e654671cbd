#include "runtime/train/run/run_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>

#include "runtime/core/base/error.h"
#include "runtime/core/base/json_text.h"
#include "runtime/core/config/resolve.h"
#include "runtime/core/log/metric_direction.h"
#include "runtime/core/log/metrics_file.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "runtime/train/checkpoint/checkpoint_folder.h"
#include "runtime/train/run/run_directory.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

constexpr uintmax_t kMostMetricsBytes = 1'000'000;
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

/// A name in quotes, as in a line of metrics.
std::string quoted(const std::string& name) { return json_text(name); }

/// The last lines of a metrics file. Only requested lines are parsed.
class LastMetrics {
 public:
  explicit LastMetrics(const std::string& path) {
    try {
      lines_ = last_lines(path);
      std::reverse(lines_.begin(), lines_.end());
    } catch (const Error&) {
      lines_.clear();
    }
  }

  /// The last line of metrics that contains `text`.
  std::optional<MetricsLine> find(const std::string& text) const {
    for (const std::string& line : lines_) {
      if (line.find(text) == std::string::npos) continue;
      if (auto parsed = parse_metrics_line(line)) return parsed;
    }
    return std::nullopt;
  }

  /// The first number of the newest evaluation with a known direction, else its first number,
  /// otherwise that of the last line.
  std::string any_metric(const std::string& eval_op) const {
    if (const auto line = find("\"" + eval_op + "/")) {
      std::string first;
      for (const auto& [name, value] : line->values) {
        if (!name.starts_with(eval_op + "/")) continue;
        if (metric_direction(name, nullptr) != MetricDirection::kUnknown) return name;
        if (first.empty()) first = name;
      }
      if (!first.empty()) return first;
    }
    const auto line = find("");
    return line && !line->values.empty() ? line->values.begin()->first : "";
  }

  std::optional<double> value_of(const std::string& name) const {
    const auto line = find(quoted(name));
    const double* value = line ? line->values.find(name) : nullptr;
    return value != nullptr ? std::optional(*value) : std::nullopt;
  }

 private:
  std::vector<std::string> lines_;  ///< The last line first.
};

/// The metric in the training's newest evaluation at `step`, from its folder.
std::optional<double> value_of_evaluation(const RunDirectory& run, int64_t step,
                                          const std::string& name) {
  std::optional<double> value;
  for (const auto& evaluation : finished_evaluations(run, /*of_trainings=*/true)) {
    if (evaluation.step != step) continue;
    const OrderedMap<double> scalars = scalars_of(evaluation);
    if (const double* found = scalars.find(name)) value = *found;
  }
  return value;
}

/// The best number of that name in a whole metrics file.
std::optional<double> best_in_file(const std::string& path, const std::string& name,
                                   MetricDirection direction) {
  std::optional<double> best;
  try {
    scan_metric(path, name, [&](int64_t, double value) {
      if (std::isnan(value)) return;
      const bool is_higher = !best || value > *best;
      const bool is_lower = !best || value < *best;
      if (direction == MetricDirection::kHigher ? is_higher : is_lower) best = value;
    });
  } catch (const Error&) {
    best.reset();
  }
  return best;
}

std::optional<double> best_value(const RunDirectory& run, const std::string& name,
                                 MetricDirection direction, bool is_of_config) {
  const auto checkpoint = CheckpointFolder(run.checkpoints()).best();
  if (is_of_config && checkpoint) {
    const auto value = value_of_evaluation(run, *checkpoint, name);
    if (value) return value;
  }
  std::error_code failed;
  const uintmax_t bytes = fs::file_size(run.metrics_file(), failed);
  if (failed || bytes > kMostMetricsBytes) return std::nullopt;
  return best_in_file(run.metrics_file(), name, direction);
}

/// While a run trains, its process file says every minute that the process is there, which is no
/// sign of a step.
double seconds_since_writing(const RunDirectory& run, bool is_running) {
  double age = std::numeric_limits<double>::infinity();
  for (const auto& path : {run.metrics_file(), run.process_file(), run.log_file(),
                           run.checkpoints(), run.configs(), run.root() + "/eval", run.root()}) {
    if (is_running && path == run.process_file()) continue;
    std::error_code failed;
    const auto written = fs::last_write_time(path, failed);
    if (failed) continue;
    const std::chrono::duration<double> passed = fs::file_time_type::clock::now() - written;
    age = std::min(age, std::max(passed.count(), 0.0));
  }
  return std::isfinite(age) ? age : 0;
}

/// The newest config; empty when it cannot be read.
Value read_config(const RunDirectory& run) {
  try {
    return resolve_config({run.last_config()}, {});
  } catch (const Error&) {
    return Value::Map{};
  }
}

void read_position(const RunDirectory& run, const LastMetrics& metrics, RunSummary& summary) {
  if (const auto line = metrics.find("")) {
    summary.step = line->event.step;
    summary.epoch = line->event.epoch;
  }
  const std::vector<int64_t> steps = checkpoint_steps(run.checkpoints());
  if (steps.empty() || steps.back() <= summary.step.value_or(-1)) return;
  summary.step = steps.back();
  summary.epoch.reset();
  try {
    const std::string path = CheckpointFolder(run.checkpoints()).path_of(steps.back());
    summary.epoch = read_checkpoint_header(path).progress.fractional_epoch();
  } catch (const Error&) {
    summary.epoch.reset();
  }
}

/// For a run without a training: the result of its newest evaluation.
void read_evaluation(const RunDirectory& run, RunSummary& summary) {
  const std::vector<FoundEvaluation> all = finished_evaluations(run, /*of_trainings=*/false);
  if (all.empty()) return;
  summary.step = all.back().step;
  const OrderedMap<double> scalars = scalars_of(all.back());
  if (scalars.empty()) return;
  const double* named = scalars.find(summary.metric);
  if (named == nullptr) summary.metric = scalars.begin()->first;
  summary.last = named != nullptr ? *named : scalars.begin()->second;
}

/// The state of the newest evaluation without a training.
RunStatus status_of_evaluation(const RunDirectory& run) {
  std::string newest;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(run.root() + "/eval", failed)) {
    const std::string file = entry.path().string() + "/process.json";
    if (file > newest && fs::exists(file, failed)) newest = file;
  }
  return newest.empty() ? RunStatus() : read_run_status(newest);
}

/// The key for sorting runs: the time in the name, otherwise the time of the last writing.
std::string start_of(const RunSummary& summary) {
  const std::string time = time_in(fs::path(summary.root).filename().string());
  return time.empty() ? time_name(-static_cast<int64_t>(summary.age)) : time;
}

void add_runs(const std::string& folder, const std::string& prefix, std::vector<RunSummary>& runs) {
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    // A folder whose name begins with a dot is still being made, or was left unfinished.
    if (name.starts_with('.') || !is_run(entry->path().string())) continue;
    const std::string root = entry->path().string();
    try {
      runs.push_back(summarize_run(root));
    } catch (const std::exception&) {  // such as a folder without permission to read
      runs.emplace_back();
      runs.back().root = root;
    }
    runs.back().name = prefix + name;
  }
  if (failed) throw Error(fmt::format("cannot read {}: {}", folder, failed.message()));
}

}  // namespace

std::string metric_of(const Value& config) {
  const std::string metric = text_at(config, "checkpoints/metric");
  return metric.empty() ? text_at(config, "stop_when/metric") : metric;
}

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
  summary.age = seconds_since_writing(run, summary.status.state == RunState::kRunning);
  summary.config = read_config(run);
  const Value& config = summary.config;
  if (!number_at(config, "num_steps")) summary.num_epochs = number_at(config, "num_epochs");
  const LastMetrics metrics(run.metrics_file());
  read_position(run, metrics, summary);
  const std::string named = metric_of(config);
  const std::string eval_op = text_at(config, "eval_hook/eval_op");
  summary.metric =
      named.empty() ? metrics.any_metric(eval_op.empty() ? "validation/eval_op" : eval_op) : named;
  if (!summary.step) {  // nothing was logged or saved
    read_evaluation(run, summary);
    if (summary.status.state == RunState::kUnknown) summary.status = status_of_evaluation(run);
    return summary;
  }
  if (summary.metric.empty()) return summary;
  summary.last = metrics.value_of(summary.metric);
  const MetricDirection direction = metric_direction(summary.metric, &config);
  summary.more_is_better = direction == MetricDirection::kHigher;
  if (direction != MetricDirection::kUnknown) {
    summary.best = best_value(run, summary.metric, direction, !named.empty());
  }
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
  sorted.reserve(runs.size());
  for (const auto& [start, i] : order) sorted.push_back(std::move(runs[i]));
  return sorted;
}

}  // namespace stepop
