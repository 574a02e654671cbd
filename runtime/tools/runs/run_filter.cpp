#include "runtime/tools/runs/run_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/nearest.h"
#include "runtime/core/log/metric_direction.h"
#include "runtime/tools/cli/command_line.h"
#include "runtime/tools/report/metric_choice.h"
#include "runtime/tools/report/run_curves.h"
#include "runtime/train/run/run_directory.h"
#include "runtime/train/run/run_lock.h"

namespace stepop {
namespace {

std::optional<double> number_in(const Value& value) {
  if (value.is_int()) return static_cast<double>(value.as_int());
  return value.is_float() ? std::optional(value.as_float()) : std::nullopt;
}

bool is_equal(const Value& value, const Value& other) {
  const auto number = number_in(value);
  const auto second = number_in(other);
  if (number && second) return *number == *second;
  const Value* name = value.is_map() && other.is_text() ? value.find("class") : nullptr;
  return name != nullptr ? *name == other : value == other;
}

void add_paths(const Value& value, const std::string& path, std::vector<std::string>& paths) {
  if (!path.empty()) paths.push_back(path);
  if (!value.is_map()) return;
  for (const auto& [key, item] : value.as_map()) add_paths(item, join_path(path, key), paths);
}

void check_key_is_known(const std::vector<RunSummary>& runs, const ConfigCondition& condition) {
  std::vector<std::string> paths;
  for (const auto& run : runs) {
    if (run.config.find(condition.path()) != nullptr) return;
    add_paths(run.config, "", paths);
  }
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  const auto near = nearest_paths(condition.path(), paths, 1);
  if (runs.empty()) return;
  throw UsageError(fmt::format("stepop runs: --where: no run has the key \"{}\"{}",
                               condition.path(),
                               near.empty() ? "" : fmt::format(": did you mean \"{}\"?", near[0])));
}

void check_state(const std::string& state) {
  using enum RunState;
  for (const RunState each : {kUnknown, kRunning, kEnded, kStopped, kFailed, kKilled}) {
    if (state == name_of(each)) return;
  }
  throw UsageError(fmt::format(
      "stepop runs: --state {}: expected running, ended, stopped, failed, killed or unknown",
      state));
}

}  // namespace

ConfigCondition::ConfigCondition(const std::string& text) {
  const std::optional<Comparison> read = read_comparison(text);
  if (!read) {
    throw UsageError(fmt::format(
        "stepop runs: --where {}: expected a key of the config and a value, as in optimizer/lr=1e-3"
        " or 'batch_size>=32'",
        text));
  }
  comparison_ = *read;
  value_ = override_value(path(), comparison_.value);
}

bool ConfigCondition::holds_in(const Value& config) const {
  using Sign = Comparison::Sign;
  const Value* found = config.find(path());
  const Value value = found != nullptr ? *found : Value();
  if (comparison_.sign == Sign::kEqual) return is_equal(value, value_);
  if (comparison_.sign == Sign::kUnequal) return !is_equal(value, value_);
  const auto number = number_in(value);
  const auto limit = number_in(value_);
  return number && limit && comparison_.holds(*number, *limit);
}

void filter_runs(std::vector<RunSummary>& runs, const RunFilter& filter) {
  if (filter.state) check_state(*filter.state);
  for (const auto& text : filter.where) {
    const ConfigCondition condition(text);
    check_key_is_known(runs, condition);
    std::erase_if(runs, [&](const RunSummary& run) { return !condition.holds_in(run.config); });
  }
  std::erase_if(runs, [&](const RunSummary& run) {
    const bool has_name = !filter.name || run.name.find(*filter.name) != std::string::npos;
    const bool has_state = !filter.state || *filter.state == name_of(run.status.state);
    return !has_name || !has_state;
  });
}

void show_metric(std::vector<RunSummary>& runs, const std::string& asked) {
  std::string name = asked;
  MetricDirection direction = MetricDirection::kUnknown;
  if (asked.starts_with("max:")) direction = MetricDirection::kHigher;
  if (asked.starts_with("min:")) direction = MetricDirection::kLower;
  if (direction != MetricDirection::kUnknown) name = asked.substr(4);
  std::vector<RunDirectory> directories;
  for (const auto& run : runs) directories.push_back(RunDirectory::at(run.root));
  name = choose_metric(name, directories, "stepop runs: --best");
  for (const auto& run : runs) {
    if (direction == MetricDirection::kUnknown) direction = metric_direction(name, &run.config);
  }
  if (direction == MetricDirection::kUnknown && !runs.empty()) {
    throw UsageError(fmt::format(
        "stepop runs: --best {}: its name does not say whether lower or higher is better: "
        "--best min:{} or --best max:{}",
        asked, asked, asked));
  }
  for (size_t i = 0; i < runs.size(); ++i) {
    const ScalarSummary scalar = summarize_scalar(directories[i], name);
    const auto best = best_of(scalar, direction);
    runs[i].metric = name;
    runs[i].more_is_better = direction == MetricDirection::kHigher;
    runs[i].last = scalar.last ? std::optional(scalar.last->value) : std::nullopt;
    runs[i].best = best ? std::optional(best->value) : std::nullopt;
  }
}

}  // namespace stepop
