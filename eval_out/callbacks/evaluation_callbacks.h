#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "eval_out/callbacks/callback.h"

namespace stepop {

/// Thrown by a callback that has nothing to say of these outputs, with the reason. It is no
/// failure.
class NoNumbers : public Error {
 public:
  using Error::Error;
};

/// The results of the callbacks over one evaluation, by their names in the config.
struct CallbackResults {
  OrderedMap<Logs> logs;
  OrderedMap<std::string> failures;  ///< The message of each callback that failed.
  OrderedMap<std::string> silent;    ///< Why each callback that has nothing to say has nothing.
};

/// The results as they are logged.
struct CallbackScalars {
  OrderedMap<double> scalars;        ///< By full name: `validation/eval_op/accuracy/accuracy`.
  OrderedMap<std::string> failures;  ///< The message of each callback that failed.
  OrderedMap<std::string> silent;    ///< Why each callback that has nothing to say has nothing.
};

/// The place in the config of an evaluation's callbacks.
inline constexpr const char* kEvalCallbacks = "eval_hook/eval_callbacks";
/// The place in the config of parameters for callbacks that are given by name only.
inline constexpr const char* kCallbackArguments = "eval_pipeline/callback_kwargs";

/// The callbacks in a config at `eval_hook/eval_callbacks`, or for another evaluation at
/// `evaluations/<name>/eval_callbacks`. They run in every evaluation of a session, and can run
/// afterwards. A callback is `accuracy: accuracy`, with its parameters at
/// `eval_pipeline/callback_kwargs/accuracy`, or `accuracy: {class: accuracy, logits: scores}`;
/// `report: ./my_report.py` is a Python script, see script.h; null switches a callback off.
class EvaluationCallbacks {
 public:
  /// Reads the callbacks in the config's map at `place`. Throws UsageError for anything but a map
  /// of callbacks and for an unknown callback.
  explicit EvaluationCallbacks(const Config& config, std::string place = kEvalCallbacks);

  /// Declares the parameters that the callbacks will read. Throws UsageError for a missing script.
  void declare() const;

  /// Throws UsageError, with the place and the nearest key, for a callback whose key is missing
  /// from `outputs` and, if the callback looks there, from the dataset. `batch` is a batch of the
  /// dataset, `outputs` the eval op's result for it.
  void check_keys(const EvalOutputs& outputs, const Batch& batch, const Dataset& data) const;

  /// What a callback costs: a call in this process, a process of Python, a script of the user's.
  enum class Cost { kSmall, kPython, kScript };
  using Wanted = std::function<bool(const std::string& name, Cost cost)>;

  /// Calls the callbacks in the config's order over the finished file `data_out`, or those that are
  /// `wanted`; they write their files into `folder`. An exception in one callback does not stop the
  /// others, except Interrupted, which is passed on.
  CallbackResults call(const std::string& folder, const Dataset& data_in, const EvalFile& data_out,
                       const Wanted& wanted = {}) const;

  /// The same, and writes the callbacks' images to `folder`/<callback>/<name>_<step>.png. `op` is
  /// the op that made the file, `validation/eval_op`. A value that is neither a scalar nor an image
  /// is a failure too. An Error from writing an image is passed on.
  CallbackScalars run(const std::string& op, int64_t step, const std::string& folder,
                      const Dataset& data_in, const EvalFile& data_out) const;

 private:
  struct Named {
    std::string name;
    std::string callback;  ///< The callback's registered name.
    Config params;
    std::string script;  ///< For a Python script, its absolute path; else empty.
    std::function<Logs(const CallbackArguments&)> function;
  };

  Named read(const Config& config, const Config& here, const std::string& name) const;

  Config config_;
  std::string place_;
  std::vector<Named> callbacks_;
};

}  // namespace stepop
