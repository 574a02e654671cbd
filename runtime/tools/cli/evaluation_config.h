#pragma once

#include <string>
#include <vector>

#include "runtime/core/config/value.h"

namespace stepop {

// What evaluations without a training make of the config that they begin from. `config_of_run` is
// the file of it that is the run's own; what other files and the command line give stays.

/// -n: the evaluation of `eval_hook` gets a name of its own, and those of `evaluations` go.
void name_evaluation(Value& root, const std::string& name);

/// A run's own config names the callbacks of its iterator; a functor has others.
void leave_callbacks_to_functor(Value& root, const std::string& config_of_run);

/// `stepop predict`: the evaluation of `datasets/predict` by a functor, `Predict` unless another is
/// named, with the name of the last file of `base`, else `predict`. Throws UsageError when there is
/// no data.
void make_prediction(Value& root, const std::vector<std::string>& base,
                     const std::string& config_of_run);

}  // namespace stepop
