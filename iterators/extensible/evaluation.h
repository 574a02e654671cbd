#pragma once

#include <memory>
#include <string>
#include <vector>

#include "iterators/extensible/evaluator.h"
#include "iterators/extensible/step.h"
#include "runtime/train/iterator/context.h"

namespace stepop::extensible {

/// An evaluator in its place.
struct EvaluatorPart : Part {
  std::unique_ptr<Evaluator> evaluator;
  bool is_over_split = false;  ///< It has a metric of the whole split.
};

/// The name of the callback that finds the metrics of whole splits.
inline constexpr const char* kEvaluatorCallback = "evaluator";

/// Builds those of `eval/evaluators` in the config, in its order. Throws UsageError, with the
/// place, for what the config gets wrong.
std::vector<EvaluatorPart> build_evaluators(const Context& context, Keys& keys);

}  // namespace stepop::extensible
