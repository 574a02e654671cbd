#include "eval_out/find_outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <tuple>
#include <vector>

#include "runtime/config/value.h"
#include "runtime/error.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

constexpr const char* kOutputs = "outputs.h5";
constexpr const char* kPart = "outputs.h5.part";

std::vector<fs::path> folders_in(const fs::path& parent) {
  std::vector<fs::path> folders;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(parent, failed)) {
    std::error_code ignored;
    if (entry.is_directory(ignored) && !entry.path().filename().string().starts_with('.')) {
      folders.push_back(entry.path());
    }
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

/// By the order of age: the name of the start, then the step.
using Evaluation = std::tuple<std::string, int64_t, fs::path>;

void add_steps(const fs::path& start, std::vector<Evaluation>& evaluations) {
  for (const auto& folder : folders_in(start)) {
    const int64_t step = list_index(folder.filename().string());
    if (step >= 0) evaluations.emplace_back(start.filename().string(), step, folder);
  }
}

bool has(const fs::path& folder, const char* name) {
  std::error_code ignored;
  return fs::is_regular_file(folder / name, ignored);
}

}  // namespace

std::string find_outputs(const std::string& path, bool allow_incomplete) {
  const fs::path given(path);
  std::error_code ignored;
  if (!fs::is_directory(given, ignored)) return path;
  std::vector<Evaluation> evaluations;
  if (has(given, kOutputs) || has(given, kPart)) {
    evaluations.emplace_back("", 0, given);
  } else {
    const bool is_run = fs::is_directory(given / "eval", ignored);
    add_steps(given, evaluations);
    for (const auto& start : folders_in(is_run ? given / "eval" : given)) {
      add_steps(start, evaluations);
    }
  }
  std::sort(evaluations.begin(), evaluations.end());
  std::string part;
  for (auto one = evaluations.rbegin(); one != evaluations.rend(); ++one) {
    const fs::path& folder = std::get<fs::path>(*one);
    if (has(folder, kOutputs)) return (folder / kOutputs).string();
    if (part.empty() && has(folder, kPart)) part = (folder / kPart).string();
  }
  if (!part.empty() && allow_incomplete) return part;
  if (!part.empty()) {
    throw Error(
        fmt::format("{}: no evaluation came to its end; {} holds the rows of one that did "
                    "not",
                    path, part));
  }
  throw Error(fmt::format(
      "{}: no outputs of an evaluation: neither {} nor eval/<start>/<step>/{} is there{}", path,
      kOutputs, kOutputs,
      evaluations.empty() ? "" : "; clean_after_callbacks removes them after the callbacks"));
}

}  // namespace stepop
