#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eval_out/eval_schema.h"
#include "runtime/core/config/config.h"
#include "runtime/train/when/op_name.h"
#include "runtime/train/when/trigger.h"

namespace stepop {

/// One evaluation of a config: `eval_hook`, or an entry of `evaluations`, a map from names to maps
/// with the keys of `eval_hook`.
struct EvaluationSettings {
  /// `eval_hook` has a name (`eval_hook/name`) only without a training; in a training it is empty.
  std::string name = {};
  std::string place = "eval_hook";  ///< The config's part for this evaluation.
  OpName op = {};
  Trigger when = {};
  int64_t max_batches = 0;                               ///< 0 for no limit.
  EvalCompression compression = EvalCompression::kNone;  ///< Compression of the outputs.
  bool clean_after_callbacks = false;

  bool is_of_eval_hook() const { return place == "eval_hook"; }
  /// The prefix of its metric names: `validation/eval_op`, or the evaluation's name.
  std::string prefix() const { return name.empty() ? op.text() : name; }
  /// The evaluation's folder within the folder for all evaluations of one step.
  std::string folder_in(const std::string& folder) const {
    return name.empty() ? folder : folder + "/" + name;
  }
};

/// The evaluations that are on, `eval_hook` first. `eval_hook` is off without a validation split,
/// and in a training with `eval_hook: null`; an entry of `evaluations` is off when it is `null`.
/// With `debug`, the limits of `debug/` hold. Throws UsageError for settings that make no sense.
std::vector<EvaluationSettings> read_evaluations(const Config& config, int64_t steps_per_epoch,
                                                 bool train, bool debug);

/// The config with the evaluation `name` in the place of `eval_hook`, and no other evaluation.
/// Unchanged when `name` is empty, or the config has no evaluation of that name.
Value config_of_evaluation(Value config, const std::string& name);

}  // namespace stepop
