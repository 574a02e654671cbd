#include "runtime/cli/evaluation_folders.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/number_text.h"
#include "runtime/system/folders.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// `10:00:00` of `2026-11-21T10-00-00`
std::string clock_of(const std::string& time) {
  std::string clock = time.substr(time.find('T') + 1);
  std::replace(clock.begin(), clock.end(), '-', ':');
  return clock;
}

/// The times of starts that evaluated without a training, the newest first.
std::vector<std::string> times_of_evaluations(const RunDirectory& run) {
  std::vector<std::string> times;
  std::error_code failed;
  for (const auto& start : fs::directory_iterator(run.root() + "/eval", failed)) {
    const std::string name = start.path().filename().string();
    if (run.is_without_training(name)) times.push_back(time_in(name));
  }
  std::sort(times.rbegin(), times.rend());
  return times;
}

}  // namespace

EvaluationFolders::EvaluationFolders(const RunDirectory& run, std::string config, std::string time)
    : run_(run), config_(std::move(config)), time_(std::move(time)) {
  if (!time_.empty()) lock(time_);
}

/// Whether no other process writes there.
bool EvaluationFolders::lock(const std::string& time) {
  if (locks_.contains(time)) return true;
  const std::string folder = run_.root() + "/" + run_.evaluations(time);
  make_folders(folder);
  try {
    const auto [added, is_new] = locks_.try_emplace(time, folder + "/process.json", time);
    added->second.begin();
    return is_new;
  } catch (const UsageError&) {
    return false;
  }
}

std::optional<std::string> EvaluationFolders::go_on(int64_t step, const RowsIn& rows_in,
                                                    Console& console) {
  for (const auto& time : times_of_evaluations(run_)) {
    const std::string folder = run_.root() + "/" + run_.evaluation(time, step);
    const auto is_over = [&] { return fs::exists(scalars_file(folder)); };
    if (!fs::is_directory(folder) || is_over()) continue;
    if (text_of(run_.config_file("eval", time)) != config_) continue;
    const auto rows = rows_in(folder);
    if (!rows || !lock(time) || is_over()) continue;
    console.info(fmt::format("going on with the evaluation of {} at row {} of {}", clock_of(time),
                             with_thousands(rows->done), with_thousands(rows->total)));
    return folder;
  }
  return std::nullopt;
}

std::string EvaluationFolders::take(int64_t step, const RowsIn& rows_in, Console& console) {
  if (const auto folder = go_on(step, rows_in, console)) return *folder;
  const auto folder = [&] { return run_.root() + "/" + run_.evaluation(time_, step); };
  // A step that a training makes anew is evaluated again, beside what was.
  if (time_.empty() || fs::exists(folder())) {
    time_ = take_time(run_, "eval", config_);
    lock(time_);
  }
  return folder();
}

void EvaluationFolders::end() {
  for (auto& [time, lock] : locks_) lock.end("done");
}

}  // namespace stepop
