#include "runtime/tools/report/report_evaluations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "eval_out/read/find_evaluations.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/log/metric_direction.h"
#include "runtime/core/log/metrics_file.h"
#include "runtime/tools/report/worst_examples.h"
#include "runtime/train/run/run_directory.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostEvaluations = 300;

/// The evaluations to show, by step: all, or an even selection.
std::vector<FoundEvaluation> choose(std::vector<FoundEvaluation> found) {
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.step < b.step; });
  if (found.size() <= kMostEvaluations) return found;
  std::vector<FoundEvaluation> some;
  for (size_t i = 0; i < kMostEvaluations; ++i) {
    some.push_back(found[i * (found.size() - 1) / (kMostEvaluations - 1)]);
  }
  return some;
}

/// The scalars are written last; outputs may be removed after that.
bool is_complete(const FoundEvaluation& evaluation) {
  if (!evaluation.outputs.empty()) return evaluation.outputs.ends_with(".h5");
  std::error_code failed;
  return fs::exists(scalars_file(evaluation.folder), failed);
}

/// The evaluation's own scalars, or else the scalars that the run logged at its step.
OrderedMap<double> scalars_or_logged(const FoundEvaluation& evaluation, const RunCurves& curves) {
  std::error_code failed;
  const std::string path = scalars_file(evaluation.folder);
  if (fs::exists(path, failed)) return read_scalars_file(path);
  const auto found = curves.evaluations.find(evaluation.step);
  return found == curves.evaluations.end() ? OrderedMap<double>() : found->second;
}

/// The outputs of the newest evaluation; an evaluation with a name counts only if there are no
/// others. A .part file may still be in the process of being written.
std::string newest_outputs(const std::string& root) {
  std::string path;
  for (const FoundEvaluation& evaluation : find_evaluations(root)) {
    const bool is_whole = evaluation.outputs.ends_with(".h5");
    const bool has_whole = path.ends_with(".h5");
    if (!evaluation.name.empty() && has_whole) continue;
    if (!evaluation.outputs.empty() && (is_whole || !has_whole)) path = evaluation.outputs;
  }
  return path;
}

}  // namespace

Json evaluations_json(const std::string& root, const RunCurves& curves, const Value& config,
                      std::vector<std::string>& notes) {
  const std::vector<FoundEvaluation> all = find_evaluations(root);
  std::vector<std::string> names;
  Json rows = Json::array();
  for (const FoundEvaluation& evaluation : choose(all)) {
    Json values = Json::object();
    add_part(evaluation.folder, notes, [&] {
      for (const auto& [name, value] : scalars_or_logged(evaluation, curves)) {
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
        values[name] = std::isfinite(value) ? number(value) : Json(short_number(value));
      }
    });
    rows.push_back({{"start", evaluation.start},
                    {"step", evaluation.step},
                    {"complete", is_complete(evaluation)},
                    {"values", values}});
  }
  Json columns = Json::array();
  for (const auto& name : names) {
    columns.push_back({{"name", name},
                       {"place", place_text(name)},
                       {"better", better_text(metric_direction(name, &config))}});
  }
  return {{"columns", columns}, {"rows", rows}, {"total", all.size()}};
}

WorstJson worst_json(const std::string& root, size_t count, int64_t most_picture_bytes,
                     std::vector<std::string>& notes) {
  const std::string path = newest_outputs(root);
  if (path.empty()) return {};
  const WorstExamples worst = find_worst_examples(EvalFile(path), count, most_picture_bytes);
  if (worst.examples.empty()) return {};
  WorstJson found;
  Json examples = Json::array();
  for (const WorstExample& example : worst.examples) {
    Json pictures = Json::array();
    for (const auto& bytes : example.pictures) {
      pictures.push_back(bytes.empty() ? Json() : Json(base64(bytes)));
      found.picture_bytes += static_cast<int64_t>(bytes.size());
    }
    examples.push_back({{"index", example.index},
                        {"loss", short_number(example.loss)},
                        {"values", example.values},
                        {"pictures", pictures}});
  }
  found.json = {{"file", fs::path(path).lexically_relative(root).string()},
                {"loss", worst.loss},
                {"keys", worst.keys},
                {"picture_keys", worst.picture_keys},
                {"examples", examples}};
  if (worst.pictures_left_out > 0) {
    notes.push_back(
        fmt::format("pictures of the worst examples that were left out, because all "
                    "together are too large: {}",
                    worst.pictures_left_out));
  }
  return found;
}

}  // namespace stepop
