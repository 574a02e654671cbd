#pragma once

#include <string>
#include <vector>

#include "runtime/core/value/value.h"

namespace stepop {

// Changes to the config with which evaluations without a training begin. `config_of_run` is the
// file that is the run's own config; values from other files and the command line stay.

/// -n: names the evaluation of `eval_hook`, and removes `evaluations`.
void name_evaluation(Value& root, const std::string& name);

/// If there is a functor, removes the callbacks of the run's own config, meant for its iterator.
void leave_callbacks_to_functor(Value& root, const std::string& config_of_run);

/// `stepop predict`: sets up the evaluation of `datasets/predict` by a functor, by default
/// `Predict`. The name is that of the last file of `base`, or else `predict`. Throws UsageError
/// when there is no data.
void make_prediction(Value& root, const std::vector<std::string>& base,
                     const std::string& config_of_run);

}  // namespace stepop
