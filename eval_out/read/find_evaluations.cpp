#include "eval_out/read/find_evaluations.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "runtime/core/base/error.h"
#include "runtime/core/value/value.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

/// Adds the named evaluations of the same step; other folders there belong to callbacks.
void add_named(const FoundEvaluation& main, std::vector<FoundEvaluation>& found) {
  const FoundEvaluation of_step = main;  // copied, since `found` may reallocate
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(of_step.folder, failed)) {
    if (!entry.is_directory(failed)) continue;
    FoundEvaluation named = of_step;
    named.folder = entry.path().string();
    named.name = entry.path().filename().string();
    named.outputs = outputs_in(named.folder);
    if (named.outputs.empty() && !fs::exists(entry.path() / "scalars.json", failed)) continue;
    found.push_back(std::move(named));
  }
}

/// Adds the steps that one start evaluated.
void add_steps(const fs::path& start, std::vector<FoundEvaluation>& found) {
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(start, failed)) {
    const int64_t step = list_index(entry.path().filename().string());
    if (step < 0 || !entry.is_directory(failed)) continue;
    const std::string folder = entry.path().string();
    found.push_back({folder, start.filename().string(), step, "", outputs_in(folder)});
    add_named(found.back(), found);
  }
}

void sort(std::vector<FoundEvaluation>& found) {
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::tie(a.start, a.step, a.name) < std::tie(b.start, b.step, b.name);
  });
}

/// The newest complete evaluation comes before an evaluation that is being written or was killed.
std::string newest_outputs(const std::vector<FoundEvaluation>& found) {
  for (const char* ending : {"outputs.h5", "outputs.h5.part"}) {
    // The evaluation of eval_hook comes before named evaluations.
    for (const bool is_named : {false, true}) {
      const auto newest = std::find_if(found.rbegin(), found.rend(), [&](const auto& evaluation) {
        return evaluation.outputs.ends_with(ending) && evaluation.name.empty() != is_named;
      });
      if (newest != found.rend()) return newest->outputs;
    }
  }
  return "";
}

}  // namespace

std::vector<FoundEvaluation> find_evaluations(const std::string& run) {
  std::vector<FoundEvaluation> found;
  std::error_code failed;
  for (const auto& start : fs::directory_iterator(run + "/eval", failed)) {
    if (start.is_directory(failed)) add_steps(start.path(), found);
  }
  sort(found);
  return found;
}

std::string outputs_in(const std::string& folder) {
  std::error_code failed;
  // The third check is for a .part that became the complete file between the first two checks.
  for (const char* name : {"/outputs.h5", "/outputs.h5.part", "/outputs.h5"}) {
    if (fs::is_regular_file(folder + name, failed)) return folder + name;
  }
  return "";
}

std::string part_hint(const std::string& path) {
  std::error_code failed;
  if (!fs::exists(path + ".part", failed)) return "";
  return fmt::format("; {}.part holds the rows of an unfinished evaluation", path);
}

std::string find_outputs(const std::string& path) {
  std::error_code failed;
  if (fs::is_regular_file(path, failed)) return path;
  if (!fs::is_directory(path, failed)) {
    const std::string hint = part_hint(path);
    throw UsageError(path + (hint.empty() ? ": no such file or folder" : ": no such file" + hint));
  }
  std::string folder = path;
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  std::string outputs = outputs_in(folder);
  const bool is_eval = fs::path(folder).filename() == "eval";
  const auto found = find_evaluations(is_eval ? folder + "/.." : folder);
  if (outputs.empty()) outputs = newest_outputs(found);
  if (outputs.empty()) {
    std::vector<FoundEvaluation> of_start;
    add_steps(folder, of_start);
    sort(of_start);
    outputs = newest_outputs(of_start);
  }
  if (outputs.empty()) {
    throw UsageError(fmt::format(
        "{}: no outputs in this folder; give the folder of a run that was evaluated, of one of its "
        "evaluations (eval/<time>_<name>/<step>), or an outputs.h5{}",
        path, found.empty() ? "" : "; clean_after_callbacks removes outputs after the callbacks"));
  }
  return fs::path(outputs).lexically_normal().string();
}

}  // namespace stepop
