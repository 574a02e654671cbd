#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "eval_out/callbacks/callback.h"

namespace stepop {

/// What the callbacks over one evaluation returned, by the name that the config gives each.
struct CallbackResults {
  OrderedMap<Logs> logs;
  OrderedMap<std::string> failures;  ///< The message of each that threw.
};

/// The same as it is logged.
struct CallbackScalars {
  OrderedMap<double> scalars;        ///< By full name: `validation/eval_op/accuracy/accuracy`.
  OrderedMap<std::string> failures;  ///< The message of each callback that failed.
};

/// Where the config names the callbacks of an evaluation.
inline constexpr const char* kEvalCallbacks = "eval_hook/eval_callbacks";
/// Where it has the parameters of those that it names without any.
inline constexpr const char* kCallbackArguments = "eval_pipeline/callback_kwargs";

/// The callbacks that a config names in `eval_hook/eval_callbacks`, or for another evaluation in
/// `evaluations/<name>/eval_callbacks`, for every evaluation of a session and afterwards alike:
/// `accuracy: accuracy`, with its parameters in `eval_pipeline/callback_kwargs/accuracy`, or
/// `accuracy: {class: accuracy, logits: scores}`; `report: ./my_report.py` is a Python script, see
/// script.h; null switches one off.
class EvaluationCallbacks {
 public:
  /// Those that the config names in the map at `place`. Throws UsageError for what is no map of
  /// callbacks and for an unknown callback.
  explicit EvaluationCallbacks(const Config& config, std::string place = kEvalCallbacks);

  /// Makes the parameters that the callbacks are going to read known. Throws UsageError for a
  /// script that is not there.
  void declare() const;

  /// Throws UsageError, with the place and the nearest key, for a callback that names a key which
  /// neither `outputs` nor, where the callback looks there, the dataset has; `batch` is one of the
  /// dataset, `outputs` what the eval op returned for it.
  void check_keys(const EvalOutputs& outputs, const Batch& batch, const Dataset& data) const;

  /// Calls them in the config's order over the finished file `data_out`; what they write goes to
  /// `folder`. One that throws does not stop the others, except by Interrupted, which passes.
  CallbackResults call(const std::string& folder, const Dataset& data_in,
                       const EvalFile& data_out) const;

  /// The same, with their images as `folder`/<callback>/<name>_<step>.png. `op` is what the file
  /// came out of, `validation/eval_op`. What is no scalar or no image is a failure as well; the
  /// Error of an image that cannot be written passes.
  CallbackScalars run(const std::string& op, int64_t step, const std::string& folder,
                      const Dataset& data_in, const EvalFile& data_out) const;

 private:
  struct Named {
    std::string name;
    std::string callback;  ///< Its registered name.
    Config params;
    std::string script;  ///< Absolute path of the Python script that it is; else empty.
    std::function<Logs(const CallbackArguments&)> function;
  };

  Named read(const Config& config, const Config& here, const std::string& name) const;

  Config config_;
  std::string place_;
  std::vector<Named> callbacks_;
};

}  // namespace stepop
