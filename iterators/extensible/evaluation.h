#pragma once

#include <memory>
#include <string>
#include <vector>

#include "iterators/extensible/step/evaluator.h"
#include "iterators/extensible/step/step.h"
#include "runtime/train/iterator/context.h"

namespace stepop::extensible {

/// An evaluator, with its place in the config.
struct EvaluatorPart : Part {
  std::unique_ptr<Evaluator> evaluator;
  bool is_over_split = false;  ///< The evaluator has a metric of the whole split.
  std::string dataset;         ///< The split that it measures alone; empty for any.

  bool measures(const std::string& split) const { return dataset.empty() || dataset == split; }
};

/// The name of the callback that computes the metrics of whole splits.
inline constexpr const char* kEvaluatorCallback = "evaluator";

/// Builds the evaluators of `eval/evaluators` in the config's order. A dataset that one of them
/// names gets an evaluation of its name in the config, unless one of `evaluations` is of it. Throws
/// UsageError, with the place, for mistakes in the config.
std::vector<EvaluatorPart> build_evaluators(const Context& context, Keys& keys);

}  // namespace stepop::extensible
