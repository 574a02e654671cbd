#include "runtime/run/run_evaluations.h"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "runtime/base/error.h"
#include "runtime/config/value.h"
#include "runtime/log/metrics_file.h"

namespace stepop {
namespace fs = std::filesystem;

std::vector<RunEvaluation> find_run_evaluations(const RunDirectory& run, bool of_trainings) {
  std::vector<RunEvaluation> found;
  std::error_code failed;
  for (const auto& start : fs::directory_iterator(run.root() + "/eval", failed)) {
    const std::string name = start.path().filename().string();
    if (run.is_without_training(name) == of_trainings) continue;
    for (const auto& entry : fs::directory_iterator(start.path(), failed)) {
      const int64_t step = list_index(entry.path().filename().string());
      const std::string scalars = entry.path().string() + "/scalars.json";
      if (step >= 0 && fs::exists(scalars, failed)) found.push_back({name, step, scalars});
    }
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::tie(a.start, a.step) < std::tie(b.start, b.step);
  });
  return found;
}

OrderedMap<double> scalars_of(const RunEvaluation& evaluation) {
  try {
    return read_scalars(evaluation.scalars);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace stepop
