#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eval_out/eval_schema.h"
#include "runtime/core/config/config.h"
#include "runtime/train/when/op_name.h"
#include "runtime/train/when/trigger.h"

namespace stepop {

/// One of the evaluations that a config asks for: that of `eval_hook`, or one of `evaluations`, a
/// map of names and of what `eval_hook` may have.
struct EvaluationSettings {
  /// That of `eval_hook` has one only without a training, `eval_hook/name`: else it is empty.
  std::string name = {};
  std::string place = "eval_hook";  ///< Its part of the config.
  OpName op = {};
  Trigger when = {};
  int64_t max_batches = 0;                               ///< 0 for no limit.
  EvalCompression compression = EvalCompression::kNone;  ///< Of the outputs.
  bool clean_after_callbacks = false;

  bool is_of_eval_hook() const { return place == "eval_hook"; }
  /// Before the names of its numbers: `validation/eval_op`, or its own name.
  std::string prefix() const { return name.empty() ? op.text() : name; }
  /// Its own folder within that of the evaluations of one step.
  std::string folder_in(const std::string& folder) const {
    return name.empty() ? folder : folder + "/" + name;
  }
};

/// Those that are on, that of `eval_hook` first. It is off without a validation split, and in a
/// training by `eval_hook: null`; another one by `null` in its place. With `debug`, the limits of
/// `debug/` hold. Throws UsageError for what makes no sense.
std::vector<EvaluationSettings> read_evaluations(const Config& config, int64_t steps_per_epoch,
                                                 bool train, bool debug);

/// A config as it would be with the evaluation `name` alone, in the place of that of `eval_hook`;
/// as it is when `name` is empty, or the config has none of that name.
Value config_of_evaluation(Value config, const std::string& name);

}  // namespace stepop
