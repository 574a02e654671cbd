#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "eval_out/read/eval_reader.h"
#include "runtime/core/base/ordered_map.h"
#include "runtime/core/components/registry.h"
#include "runtime/core/config/config.h"
#include "runtime/core/log/logs.h"
#include "runtime/data/dataset.h"

namespace stepop {

/// The arguments of a callback, which runs after an evaluation's outputs are written.
struct CallbackArguments {
  const std::string& root;   ///< The evaluation's folder, in which the callback's files belong.
  const Dataset& data_in;    ///< The evaluated dataset: row i is the example `data_out.index()[i]`.
  const EvalFile& data_out;  ///< The outputs; they may be large, so read them block by block.
  Config config;             ///< The whole config of the run.
  Config params;             ///< The callback's own part of the config.
  std::string name = {};     ///< The callback's name in the config.

  /// The path of a file of this callback, `<root>/<name>/<file>`; makes the folder.
  std::string path_of(const std::string& file) const;

  /// The examples of rows `first` to `first + count`, on the CPU. They are drawn from the dataset
  /// again with the evaluation's random numbers: with the noise and the crops that the model saw.
  /// Throws Error for a row whose example the dataset does not have.
  Batch examples(int64_t first, int64_t count) const;

  /// The dataset's example `index` as it appears among the split's fixed examples.
  Example fixed_example(int64_t index) const;
};

/// A callback reads the outputs of an evaluation; the Logs that it returns are logged under its
/// name.
using CallbackRegistry = Registry<Logs(const CallbackArguments&)>;
CallbackRegistry& callbacks();

/// A callback with parameters is a function of the arguments and its `Params`, which declares them.
template <class Params>
using CallbackWith = Logs (*)(const CallbackArguments&, const Params&);

inline CallbackRegistry::Factory callback_of(CallbackRegistry::Factory function) {
  return function;
}
template <class Params>
CallbackRegistry::Factory callback_of(CallbackWith<Params> function) {
  return [function](const CallbackArguments& arguments) {
    return function(arguments, read_parameters<Params>(arguments.params));
  };
}
inline About about_callback(const CallbackRegistry::Factory& /*function*/, About given = {}) {
  return given;
}
template <class Params>
About about_callback(CallbackWith<Params> /*function*/, About given = {}) {
  given.parameters = parameters_of<Params>();
  return given;
}

/// A parameter of a callback that names a key, or a list of keys, so that a missing key is found
/// before a run begins.
struct KeyParameter {
  enum class From { kFile, kFileOrDataset };

  std::string name;
  From from = From::kFileOrDataset;  ///< Where the callback looks for the key.
};

/// The key parameters of each callback, by its registered name.
OrderedMap<std::vector<KeyParameter>>& keys_of_callbacks();

/// What a callback says of its parameters before a run begins, by its registered name. Throws
/// UsageError.
using CallbackCheck = std::function<void(const Config& params)>;
OrderedMap<CallbackCheck>& callback_checks();

}  // namespace stepop

/// STEPOP_CALLBACK_CHECK(Metric, [](const Config& params) { read_metric(params); });
#define STEPOP_CALLBACK_CHECK(name, ...)                                          \
  [[maybe_unused]] static const auto& STEPOP_CONCAT(stepop_check_, __COUNTER__) = \
      ::stepop::callback_checks().set(#name, __VA_ARGS__)

/// Registers the parameters of a callback that name keys, each as a KeyParameter:
/// STEPOP_CALLBACK_KEYS(regression, {"prediction", KeyParameter::From::kFile}, {"target"});
#define STEPOP_CALLBACK_KEYS(name, ...)                                          \
  [[maybe_unused]] static const auto& STEPOP_CONCAT(stepop_keys_, __COUNTER__) = \
      ::stepop::keys_of_callbacks().set(#name, {__VA_ARGS__})

/// Registers a function `Logs function(const CallbackArguments&)`, or one with `const Params&`
/// behind, under `name`: STEPOP_REGISTER_CALLBACK(accuracy, accuracy, {"What it does."});
#define STEPOP_REGISTER_CALLBACK(name, function, ...)                            \
  STEPOP_REGISTER(::stepop::callbacks(), #name, ::stepop::callback_of(function), \
                  ::stepop::about_callback(function __VA_OPT__(, ) __VA_ARGS__))
