#include "runtime/tools/sweep/sweep_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/config/config.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/file_calls.h"
#include "runtime/core/system/folders.h"
#include "runtime/core/system/read_file.h"
#include "runtime/core/value/difference.h"
#include "runtime/core/value/yaml_reader.h"
#include "runtime/core/value/yaml_writer.h"
#include "runtime/train/run/run_directory.h"

namespace stepop {
namespace {

namespace fs = std::filesystem;

std::string plan_file(const std::string& folder) { return folder + "/plan.yaml"; }

Value list_of_texts(const std::vector<std::string>& texts) {
  Value::List list;
  for (const auto& text : texts) list.emplace_back(text);
  return list;
}

/// A text that is the same for the same values in any order.
std::string identity(const Value::Map& values) {
  std::vector<std::string> parts;
  for (const auto& [path, value] : values) parts.push_back(path + "=" + flow_yaml(value));
  std::sort(parts.begin(), parts.end());
  return fmt::format("{}", fmt::join(parts, " "));
}

}  // namespace

std::string number_name(int64_t number) { return fmt::format("{:04}", number); }

std::string sweep_folder(const std::string& logs, const std::string& name) {
  return fmt::format("{}/sweeps/{}", logs, name);
}

std::vector<std::string> find_sweeps(const std::string& logs) {
  std::vector<std::string> folders;
  for (const std::string& parent : {logs, logs + "/sweeps"}) {
    std::error_code failed;
    for (fs::directory_iterator entry(parent, failed), end; !failed && entry != end;
         entry.increment(failed)) {
      std::error_code ignored;
      if (fs::exists(plan_file(entry->path().string()), ignored))
        folders.push_back(entry->path().string());
    }
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

std::optional<SweepPlan> SweepPlan::read(const std::string& folder) {
  const std::string path = plan_file(folder);
  std::error_code failed;
  if (!fs::exists(path, failed)) return std::nullopt;
  const Config file(read_yaml_file_with_paths(path));
  SweepPlan plan(folder, file.get<std::string>("name"));
  plan.metric_ = file.get("metric", "");
  plan.mode_ = file.get("mode", "");
  plan.jobs_ = file.get_between("jobs", 1, kMostSweepJobs, 1);
  if (file.has("over")) plan.over_ = file.get<std::vector<std::string>>("over");
  const Value runs = file.get<Value>("runs");
  if (!runs.is_list()) throw file.error("runs", "expected a list, found " + runs.describe());
  for (const auto& values : runs.as_list()) {
    if (!values.is_map()) throw file.error("runs", "expected a list of maps");
    plan.runs_.push_back({static_cast<int64_t>(plan.runs_.size()) + 1, values.as_map()});
  }
  return plan;
}

std::vector<size_t> SweepPlan::extend(const SweepFile& sweep,
                                      const std::vector<std::string>& configs) {
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < sweep.points.size(); ++i) {
    places[identity(values_of(sweep.points[i]))] = i;
  }
  std::set<size_t> planned;
  const auto refuse = [&](const PlannedRun& run, const std::string& how) {
    throw UsageError(fmt::format(
        "{} has a plan, and run {} of it ({}) {}A sweep that is there can only get more runs: give "
        "this one another name, or restore what it was",
        folder_, number_name(run.number), point_text(run.values), how));
  };
  for (const auto& run : runs_) {
    const auto found = places.find(identity(run.values));
    if (found == places.end()) refuse(run, "is not in the sweep file any more. ");
    const std::string before = read_file(config_file(run));
    const std::string& now = configs[found->second];
    if (before != now) {
      const auto changes = differences(parse_yaml(before, {"", 0}), parse_yaml(now, {"", 0}));
      if (!changes.empty()) refuse(run, "has another config now:\n" + describe(changes) + "\n");
    }
    planned.insert(found->second);
  }
  std::vector<size_t> added;
  new_configs_.clear();
  for (size_t i = 0; i < sweep.points.size(); ++i) {
    if (planned.contains(i)) continue;
    added.push_back(i);
    runs_.push_back({static_cast<int64_t>(runs_.size()) + 1, values_of(sweep.points[i])});
    new_configs_.push_back(configs[i]);
  }
  over_ = sweep.over;
  metric_ = sweep.metric;
  mode_ = sweep.mode;
  jobs_ = sweep.jobs;
  return added;
}

void SweepPlan::write_configs() const {
  make_folders(folder_ + "/plan");
  const size_t first = runs_.size() - new_configs_.size();
  for (size_t i = 0; i < new_configs_.size(); ++i) {
    write_file_atomically(config_file(runs_[first + i]), new_configs_[i]);
  }
}

void SweepPlan::remove_configs() const {
  for (size_t i = runs_.size() - new_configs_.size(); i < runs_.size(); ++i) {
    file_calls().unlink(config_file(runs_[i]).c_str());
  }
}

void SweepPlan::write() const {
  Value::List runs;
  for (const auto& run : runs_) runs.emplace_back(run.values);
  Value::Map plan = {{"name", name_}, {"jobs", jobs_}};
  if (!metric_.empty()) plan.set("metric", metric_);
  if (!mode_.empty()) plan.set("mode", mode_);
  plan.set("over", list_of_texts(over_));
  plan.set("runs", runs);
  write_file_atomically(plan_file(folder_), to_yaml(plan));
}

std::vector<std::string> SweepPlan::keys() const {
  std::vector<std::string> keys;
  for (const auto& run : runs_) {
    for (const auto& [path, value] : run.values) {
      if (std::find(keys.begin(), keys.end(), path) == keys.end()) keys.push_back(path);
    }
  }
  return keys;
}

std::string SweepPlan::run_name(const PlannedRun& run) const {
  return name_ + "_" + number_name(run.number);
}

std::string SweepPlan::config_file(const PlannedRun& run) const {
  return fmt::format("{}/plan/{}.yaml", folder_, number_name(run.number));
}

std::string SweepPlan::output_file(const PlannedRun& run) const {
  return fmt::format("{}/output/{}.txt", folder_, number_name(run.number));
}

std::string SweepPlan::run_folder(const PlannedRun& run) const {
  return run_folders()[static_cast<size_t>(run.number) - 1];
}

std::vector<std::string> SweepPlan::run_folders() const {
  std::map<std::string, std::string> newest;  // by run name
  std::error_code failed;
  for (fs::directory_iterator entry(folder_, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string folder = entry->path().filename().string();
    if (time_in(folder).empty()) continue;
    const RunDirectory run = RunDirectory::at(entry->path().string());
    std::string& place = newest[run.run_name()];
    place = std::max(place, run.root());
  }
  std::vector<std::string> folders;
  for (const auto& run : runs_) folders.push_back(newest[run_name(run)]);
  return folders;
}

}  // namespace stepop
