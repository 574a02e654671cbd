#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eval_out/read/eval_reader.h"
#include "runtime/core/base/ordered_map.h"
#include "runtime/core/config/config.h"
#include "runtime/core/config/registry.h"
#include "runtime/core/log/logs.h"
#include "runtime/data/dataset.h"

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

  /// The examples of rows `first` to `first + count`, drawn from the dataset again with the random
  /// numbers of the evaluation: with the noise and the crops that the model saw. On the CPU. Throws
  /// Error for a row whose example the dataset does not have.
  Batch examples(int64_t first, int64_t count) const;

  /// The example `index` of the dataset as it is among the split's fixed examples.
  Example fixed_example(int64_t index) const;
};

/// Looks at the outputs of an evaluation; what it returns is logged under its name.
using CallbackRegistry = Registry<Logs(const CallbackArguments&)>;
CallbackRegistry& callbacks();

/// A parameter of a callback that names a key, or several in a list, so that a key that is not
/// there is found before a run begins.
struct KeyParameter {
  enum class From { kFile, kFileOrDataset };

  std::string name;
  From from = From::kFileOrDataset;  ///< Where the callback looks for it.
};

/// Those of each callback, by its registered name.
OrderedMap<std::vector<KeyParameter>>& keys_of_callbacks();

}  // namespace stepop

/// Says which parameters of a callback name keys, each as a KeyParameter:
/// STEPOP_CALLBACK_KEYS(regression, {"prediction", KeyParameter::From::kFile}, {"target"});
#define STEPOP_CALLBACK_KEYS(name, ...)                                          \
  [[maybe_unused]] static const auto& STEPOP_CONCAT(stepop_keys_, __COUNTER__) = \
      ::stepop::keys_of_callbacks().set(#name, {__VA_ARGS__})

/// Registers a function `Logs function(const CallbackArguments&)` under `name`:
/// STEPOP_REGISTER_CALLBACK(accuracy, accuracy, {"What it does.", {{"logits", "logits", "key"}}});
#define STEPOP_REGISTER_CALLBACK(name, function, ...) \
  STEPOP_REGISTER(::stepop::callbacks(), #name, function, __VA_ARGS__)
