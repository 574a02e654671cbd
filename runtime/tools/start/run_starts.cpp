#include "runtime/tools/start/run_starts.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/config/resolve.h"
#include "runtime/core/system/read_file.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kMostRecordBytes = 100'000'000;

/// The log's lines about one start.
struct LoggedStart {
  std::string command = {};
  std::string git = {};
  std::optional<int64_t> step = {};

  /// Whether the command is `stepop -p RUN -t`; an evaluation has no -t.
  bool trains() const {
    return (command + " ").find(" -t ") != std::string::npos ||
           command.find(" --train") != std::string::npos;
  }
};

/// The 1234 in `resuming at step 1,234 of 2,000 (...)`.
int64_t number_after(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (c == ',') continue;
    if (c < '0' || c > '9') break;
    digits += c;
  }
  return std::atoll(digits.c_str());
}

std::vector<LoggedStart> logged_starts(const RunDirectory& run) {
  constexpr size_t kTimeBytes = 20;  // `2026-11-21 10:00:00 `
  constexpr std::string_view kCommand = "command   ";
  constexpr std::string_view kGit = "git       ";
  constexpr std::string_view kResuming = "resuming at step ";
  const std::string log = try_read_file(run.log_file(), kMostRecordBytes).value_or("");
  std::vector<LoggedStart> starts;
  for (size_t begin = 0; begin < log.size();) {
    const size_t end = std::min(log.find('\n', begin), log.size());
    std::string_view line(log.data() + begin, end - begin);
    begin = end + 1;
    if (line.size() < kTimeBytes) continue;
    line.remove_prefix(kTimeBytes);
    if (line.starts_with(kCommand)) {
      starts.push_back({.command = std::string(line.substr(kCommand.size()))});
    } else if (!starts.empty() && line.starts_with(kGit)) {
      starts.back().git = line.substr(kGit.size());
    } else if (!starts.empty() && line.starts_with(kResuming)) {
      starts.back().step = number_after(line.substr(kResuming.size()));
    }
  }
  return starts;
}

std::vector<KnownStart> starts_of(const RunDirectory& run, const std::string& mode) {
  std::vector<KnownStart> starts;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(run.configs(), failed)) {
    const std::string stem = entry.path().stem().string();
    if (entry.path().extension() != ".yaml" || !stem.starts_with(mode + "_")) continue;
    KnownStart start{.time = stem.substr(mode.size() + 1), .config_file = entry.path().string()};
    try {
      start.config = resolve_config({start.config_file}, {});
    } catch (const Error& error) {
      start.problem = error.what();
    }
    start.record = record_beside(start.config_file);
    if (start.record) {
      start.command = start.record->command;
      start.step = start.record->step;
    }
    starts.push_back(std::move(start));
  }
  std::sort(starts.begin(), starts.end(),
            [](const KnownStart& a, const KnownStart& b) { return a.time < b.time; });
  return starts;
}

/// Completes starts without a record from the log, if the log has the same number of starts.
void complete_from(std::vector<KnownStart>& starts, const std::vector<LoggedStart>& logged) {
  if (starts.size() != logged.size()) return;
  for (size_t i = 0; i < starts.size(); ++i) {
    if (starts[i].record) continue;
    starts[i].command = logged[i].command;
    starts[i].git = logged[i].git;
    starts[i].step = logged[i].step;
  }
}

}  // namespace

std::optional<StartRecord> record_beside(const std::string& config_file) {
  const auto path = fs::path(config_file).replace_extension(".json");
  const auto json = try_read_file(path.string(), kMostRecordBytes);
  return json ? StartRecord::from_json(*json) : std::nullopt;
}

std::optional<StartRecord> start_with_configs(const RunDirectory& run) {
  std::vector<std::string> configs;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(run.configs(), failed)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("train_") && name.ends_with(".yaml")) configs.push_back(entry.path());
  }
  // Times are in the names.
  std::sort(configs.begin(), configs.end(), std::greater<>());
  for (const auto& config : configs) {
    auto record = record_beside(config);
    if (record && !record->configs.empty()) return record;
  }
  return std::nullopt;
}

std::vector<KnownStart> trainings_of(const RunDirectory& run) {
  std::vector<KnownStart> starts = starts_of(run, "train");
  const bool all_have_records =
      std::all_of(starts.begin(), starts.end(), [](const auto& start) { return !!start.record; });
  if (all_have_records) return starts;
  std::vector<LoggedStart> logged = logged_starts(run);
  std::erase_if(logged, [](const LoggedStart& start) { return !start.trains(); });
  complete_from(starts, logged);
  if (!starts.front().step) starts.front().step = 0;
  return starts;
}

std::vector<KnownStart> evaluations_of(const RunDirectory& run) {
  std::vector<KnownStart> starts = starts_of(run, "eval");
  for (auto& start : starts) {
    if (start.record) continue;
    // The start's folder has a folder for each evaluated step.
    std::vector<int64_t> steps;
    std::error_code failed;
    const std::string folder = run.root() + "/" + run.evaluations(start.time);
    for (const auto& entry : fs::directory_iterator(folder, failed)) {
      const int64_t step = list_index(entry.path().filename().string());
      if (step >= 0) steps.push_back(step);
    }
    if (steps.size() == 1) start.step = steps.front();
  }
  return starts;
}

}  // namespace stepop
