#include "eval_out/find_outputs.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <tuple>
#include <vector>

#include "runtime/config/value.h"
#include "runtime/error.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

constexpr const char* kWhole = "outputs.h5";
constexpr const char* kPart = "outputs.h5.part";

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    if (entry.is_directory(failed)) found.push_back(entry.path());
  }
  return found;
}

/// `<folder>/<time>_<name>/<step>/<file>` of the latest time and step.
std::optional<std::string> latest(const fs::path& folder, const char* file) {
  std::optional<std::tuple<std::string, int64_t, std::string>> best;
  std::error_code failed;
  for (const fs::path& evaluation : folders_in(folder)) {
    for (const fs::path& step : folders_in(evaluation)) {
      if (!fs::is_regular_file(step / file, failed)) continue;
      const std::tuple found{evaluation.filename().string(), list_index(step.filename().string()),
                             (step / file).string()};
      if (!best || found > *best) best = found;
    }
  }
  if (!best) return std::nullopt;
  return std::get<2>(*best);
}

}  // namespace

std::string find_outputs(const std::string& path) {
  std::error_code failed;
  if (fs::is_regular_file(path, failed)) return path;
  if (!fs::is_directory(path, failed)) {
    const bool has_part = fs::is_regular_file(path + ".part", failed);
    throw UsageError(
        has_part ? fmt::format("{}: no such file; {}.part holds the rows of an evaluation that did "
                               "not come to its end",
                               path, path)
                 : fmt::format("{}: no such file or folder", path));
  }
  for (const char* file : {kWhole, kPart}) {
    const fs::path inside = fs::path(path) / file;
    if (fs::is_regular_file(inside, failed)) return inside.lexically_normal().string();
  }
  for (const char* file : {kWhole, kPart}) {
    if (const auto found = latest((fs::path(path) / "eval").lexically_normal(), file))
      return *found;
  }
  throw UsageError(fmt::format(
      "{}: no outputs of an evaluation: looked for {} in it, and for eval/<time>_<name>/<step>/{} "
      "as a run has them",
      path, kWhole, kWhole));
}

}  // namespace stepop
