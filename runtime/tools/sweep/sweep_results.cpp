#include "runtime/tools/sweep/sweep_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/json_text.h"
#include "runtime/core/system/append_file.h"
#include "runtime/core/system/read_file.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/tools/report/metric_choice.h"
#include "runtime/tools/report/run_curves.h"
#include "runtime/train/run/run_directory.h"
#include "runtime/train/run/run_lock.h"
#include "runtime/train/run/run_summary.h"

namespace stepop {
namespace {

std::string ends_file(const SweepPlan& plan) { return plan.folder() + "/ends.jsonl"; }

/// The last end of each run, by its number.
std::map<int64_t, RunEnd> read_ends(const SweepPlan& plan) {
  std::map<int64_t, RunEnd> ends;
  const std::string text = try_read_file(ends_file(plan)).value_or("");
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const auto line = try_read_json(text.substr(begin, end - begin));
    begin = end + 1;
    if (!line.is_object() || !line.contains("run") || !line["run"].is_number_integer()) continue;
    RunEnd& found = ends[line["run"].get<int64_t>()];
    found = {.number = line["run"].get<int64_t>()};
    const auto number = [&](const char* key) {
      return line.contains(key) && line[key].is_number_integer() ? line[key].get<int>() : 0;
    };
    found.exit_code = number("exit_code");
    found.signal = number("signal");
    if (line.contains("error") && line["error"].is_string())
      found.error = line["error"].get<std::string>();
  }
  return ends;
}

SweepResult result_of(const PlannedRun& run, const std::string& folder,
                      const std::map<int64_t, RunEnd>& ends, const SweepMetric& metric) {
  SweepResult result{.run = run, .folder = folder, .state = "waiting"};
  const auto end = ends.find(run.number);
  const std::string error = end == ends.end() ? "" : end->second.error;
  RunState state = RunState::kUnknown;
  if (!folder.empty()) {
    const RunDirectory directory = RunDirectory::at(folder);
    state = read_run_status(directory.process_file()).state;
    result.step = summarize_run(folder).step;
    const ScalarSummary scalar = summarize_scalar(directory, metric.name);
    if (scalar.last) result.last = scalar.last->value;
    if (const auto best = best_of(scalar, metric.direction)) result.best = best->value;
  }
  if (state != RunState::kUnknown) result.state = name_of(state);
  if (state == RunState::kEnded || state == RunState::kRunning || error.empty()) return result;
  result.error = error;
  // The run failed before it began to train, so its state is the earlier start's.
  if (state == RunState::kUnknown || state == RunState::kStopped) result.state = "failed";
  return result;
}

/// The config's own metric, or else the metric in a list of runs.
std::string default_metric(const SweepPlan& plan, const std::vector<std::string>& folders) {
  const Value config = read_yaml_file(plan.config_file(plan.runs().front()));
  std::string metric = metric_of(config);
  for (const auto& folder : folders) {
    if (metric.empty() && !folder.empty()) metric = summarize_run(folder).metric;
  }
  return metric;
}

}  // namespace

void record_end(const SweepPlan& plan, const RunEnd& end) {
  const nlohmann::ordered_json line = {{"run", end.number},
                                       {"exit_code", end.exit_code},
                                       {"signal", end.signal},
                                       {"error", end.error}};
  AppendFile(ends_file(plan)).append(write_json(line) + "\n");
}

std::string error_in_output(const std::string& text) {
  constexpr std::string_view kOurs = "stepop: ";
  std::string compiler;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with(kOurs)) return line.substr(kOurs.size());
    if (compiler.empty() && line.find("error: ") != std::string::npos) compiler = line;
  }
  return compiler;
}

SweepMetric choose_sweep_metric(const SweepPlan& plan) {
  const std::vector<std::string> folders = plan.run_folders();
  std::vector<RunDirectory> directories;
  for (const auto& folder : folders) {
    if (!folder.empty()) directories.push_back(RunDirectory::at(folder));
  }
  SweepMetric metric;
  metric.name = plan.metric().empty() ? default_metric(plan, folders) : plan.metric();
  // The config's own metric is a full name; a plan's may prove wrong once a run has ended.
  const bool can_be_wrong =
      !plan.metric().empty() &&
      std::any_of(directories.begin(), directories.end(), [](const RunDirectory& run) {
        return read_run_status(run.process_file()).state == RunState::kEnded;
      });
  try {
    if (!plan.metric().empty()) {
      metric.name = choose_metric(metric.name, directories, plan.folder() + ": metric");
    }
  } catch (const UsageError&) {
    if (can_be_wrong) throw;
  }
  const Value config = read_yaml_file(plan.config_file(plan.runs().front()));
  metric.direction = plan.mode() == "max"   ? MetricDirection::kHigher
                     : plan.mode() == "min" ? MetricDirection::kLower
                                            : metric_direction(metric.name, &config);
  return metric;
}

SweepResult read_result(const SweepPlan& plan, const PlannedRun& run, const SweepMetric& metric) {
  return result_of(run, plan.run_folder(run), read_ends(plan), metric);
}

SweepResults read_results(const SweepPlan& plan) {
  SweepResults results{choose_sweep_metric(plan), {}};
  const std::map<int64_t, RunEnd> ends = read_ends(plan);
  const std::vector<std::string> folders = plan.run_folders();
  for (size_t i = 0; i < folders.size(); ++i) {
    results.runs.push_back(result_of(plan.runs()[i], folders[i], ends, results.metric));
  }
  return results;
}

}  // namespace stepop
