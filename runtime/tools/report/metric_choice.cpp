#include "runtime/tools/report/metric_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"
#include "runtime/core/log/metrics_file.h"
#include "runtime/core/value/value.h"
#include "runtime/train/when/logged_metric.h"

namespace stepop {
namespace {

bool is_of_evaluation(const std::string& name) {
  const std::vector<std::string> words = split_path(name);
  return std::find(words.begin(), words.end(), "eval_op") != words.end();
}

std::vector<std::string> names_of(const std::vector<RunDirectory>& runs) {
  OrderedMap<bool> names;
  for (const auto& run : runs) {
    try {
      OrderedMap<ScalarSummary> scalars = summarize_scalars(run.metrics_file());
      add_unlogged_scalars(run, scalars);
      for (const auto& [name, scalar] : scalars) names.set(name, true);
    } catch (const Error&) {  // an unreadable run has no names
    }
  }
  std::vector<std::string> list;
  for (const auto& [name, is_there] : names) list.push_back(name);
  return list;
}

}  // namespace

ScalarSummary summarize_scalar(const RunDirectory& run, const std::string& name) {
  ScalarSummary scalar;
  std::error_code failed;
  try {
    if (std::filesystem::exists(run.metrics_file(), failed)) {
      scan_metric(run.metrics_file(), name, [&](int64_t step, double value) {
        scalar.add({step, value});
      });
    }
  } catch (const Error&) {
    return scalar;
  }
  if (scalar.last) return scalar;
  for (const auto& evaluation : finished_evaluations(run, /*of_trainings=*/false)) {
    const OrderedMap<double> values = scalars_of(evaluation);
    if (const double* value = values.find(name)) scalar.add({evaluation.step, *value});
  }
  return scalar;
}

std::string choose_metric(const std::string& asked, const std::vector<RunDirectory>& runs,
                          const std::string& where) {
  const auto has_it = [&](const RunDirectory& run) {
    return summarize_scalar(run, asked).last.has_value();
  };
  if (std::any_of(runs.begin(), runs.end(), has_it)) return asked;
  const std::vector<std::string> names = names_of(runs);
  if (names.empty()) return asked;
  std::vector<std::string> meant;
  for (const auto& name : names) {
    if (is_short_for(asked, name)) meant.push_back(name);
  }
  if (meant.size() > 1) {  // an evaluation's measurement over all examples is preferred
    std::vector<std::string> of_evaluations;
    for (const auto& name : meant) {
      if (is_of_evaluation(name)) of_evaluations.push_back(name);
    }
    if (of_evaluations.size() == 1) return of_evaluations.front();
  }
  if (meant.size() == 1) return meant.front();
  if (meant.empty()) {
    throw UsageError(fmt::format("{}: no run has logged \"{}\"; there are {}", where, asked,
                                 list_text(sorted_by_meaning(asked, names))));
  }
  throw UsageError(fmt::format("{}: \"{}\" may be any of {}", where, asked, list_text(meant)));
}

}  // namespace stepop
