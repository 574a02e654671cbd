#pragma once

#include <string>
#include <string_view>

#include "eval_out/read/eval_reader.h"
#include "runtime/config/config.h"
#include "runtime/config/registry.h"
#include "runtime/data/dataset.h"
#include "runtime/log/logs.h"

namespace stepop {

/// What a callback is given once an evaluation's outputs are written.
struct CallbackArguments {
  const std::string& root;   ///< The folder of the evaluation: files that a callback makes go here.
  const Dataset& data_in;    ///< What was evaluated: row i is the example `data_out.index()[i]`.
  const EvalFile& data_out;  ///< What came out; read it block by block, it may be large.
  Config config;             ///< The whole config of the run.
  Config params;             ///< The callback's own part of it.
  std::string name = {};     ///< What the config calls it.

  /// The path of a file of the callback's own, `<root>/<name>/<file>`; makes the folder.
  std::string path_of(const std::string& file) const;
};

/// Looks at the outputs of an evaluation; what it returns is logged under its name.
using CallbackRegistry = Registry<Logs(const CallbackArguments&)>;
CallbackRegistry& callbacks();

/// What the callbacks of one evaluation returned, by the name that the config gives each.
struct CallbackResults {
  OrderedMap<Logs> logs;
  OrderedMap<std::string> failures;  ///< The message of each that threw.
};

/// Runs the callbacks that the map at `path` of `config` names, in its order:
/// `accuracy: accuracy`, with its parameters in `eval_pipeline/callback_kwargs/accuracy`, or
/// `accuracy: {class: accuracy, logits: scores}`; `report: ./my_report.py` is a Python script, as
/// script.h has it. One that throws does not stop the others, save by
/// Interrupted, which passes.
CallbackResults run_callbacks(const Config& config, std::string_view path, const std::string& root,
                              const Dataset& data_in, const EvalFile& data_out);

/// Finds mistakes before the run starts: throws UsageError for an unknown callback and for a
/// script that is not there, and makes the parameters that the callbacks will read known.
void declare_callbacks(const Config& config, std::string_view path);

}  // namespace stepop

/// Registers a function `Logs function(const CallbackArguments&)` under `name`:
/// STEPOP_REGISTER_CALLBACK(accuracy, accuracy, {"What it does.", {{"logits", "logits", "key"}}});
#define STEPOP_REGISTER_CALLBACK(name, function, ...) \
  STEPOP_REGISTER(::stepop::callbacks(), #name, function, __VA_ARGS__)
