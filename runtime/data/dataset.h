#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/random.h"
#include "runtime/core/components/registry.h"
#include "runtime/core/config/config.h"
#include "runtime/data/batch.h"

namespace stepop {

/// Where examples were chosen from, by folds, filters and subsets.
struct SourceRows {
  at::Tensor rows;    ///< Each example's place in the file or dataset, from 0: int64 [size()].
  int64_t count = 0;  ///< How many rows the file, or examples the dataset, has.
};

/// Examples by index. `get`, `get_batch` and `labels` are called from several threads at once, so
/// they must not change the dataset, or must guard their changes with a lock.
class Dataset {
 public:
  virtual ~Dataset() = default;

  /// The number of examples.
  virtual int64_t size() const = 0;

  /// The example at `index`, 0 <= index < size(). All randomness comes from `random`, which depends
  /// only on the seed, the epoch and the position, so a resumed run sees the same examples.
  virtual Example get(int64_t index, Random& random) const = 0;

  /// The examples at `indices` as one batch, for datasets that can gather a batch faster than
  /// single examples. `randoms` has one generator for each example. Empty by default: `get` is
  /// used.
  virtual std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                         std::span<Random> randoms) const {
    (void)indices, (void)randoms;
    return std::nullopt;
  }

  /// The value of `key` for all examples at once, shape [size(), ...] on the CPU, without loading
  /// the examples; undefined when the dataset does not hold it that way.
  virtual at::Tensor labels(std::string_view key) const {
    (void)key;
    return {};
  }

  /// The keys for which `labels` is defined.
  virtual std::vector<std::string> label_keys() const { return {}; }

  /// The examples' rows in the file or dataset from which they were chosen; nothing when all of it
  /// was taken in its order, and when they come from several.
  virtual std::optional<SourceRows> source_rows() const { return std::nullopt; }

  /// One line about the data for the start of a run, such as how many rows were left out; empty
  /// when there is nothing to say.
  virtual std::string notice() const { return {}; }

  /// Puts examples side by side; stacks tensors of equal shapes by default.
  virtual Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const {
    return stepop::collate(examples, std::move(indices));
  }
};

using DatasetRegistry = Registry<std::unique_ptr<Dataset>(const Config&)>;
DatasetRegistry& datasets();

/// A dataset that another component has as a parameter.
template <>
struct ParameterOf<std::unique_ptr<Dataset>> {
  static std::unique_ptr<Dataset> read(const Config& config, std::string_view path,
                                       const Allowed&) {
    return datasets().build(config, path);
  }
  static Value shown(const std::unique_ptr<Dataset>&) { return {}; }
  static std::string kind() { return "component dataset"; }
};

/// The batch of the examples at `indices`. An exception of any type from `get` becomes an Error
/// that begins with the example's index: `example 17: ...`. `get_batch` and `collate` name the
/// example themselves.
Batch load_batch(const Dataset& dataset, std::span<const int64_t> indices,
                 std::span<Random> randoms);

/// Throws Error unless 0 <= index < size. For use in `get` and `get_batch`.
void check_index(int64_t index, int64_t size);

/// The path at `key`, as Config::get_path has it; throws UsageError when there is no such file.
std::string get_file(const Config& params, std::string_view key);

/// The same as `get_file`, for a folder.
std::string get_folder(const Config& params, std::string_view key);

/// A file that is read, for a component's `Params`, as `get_file` has it.
struct InputFile : Path {};
template <>
struct ParameterOf<InputFile> : ParameterOf<Path> {
  static InputFile read(const Config& config, std::string_view path, const Allowed&) {
    return {get_file(config, path)};
  }
};

/// The same for a folder.
struct InputFolder : Path {};
template <>
struct ParameterOf<InputFolder> : ParameterOf<Path> {
  static InputFolder read(const Config& config, std::string_view path, const Allowed&) {
    return {get_folder(config, path)};
  }
};

}  // namespace stepop

/// Registers a class with a constructor from its `Params`, and its part of the config if it wants
/// that: STEPOP_REGISTER_DATASET(Idx, {"Images with labels in MNIST's format."}); see `Parameters`.
#define STEPOP_REGISTER_DATASET(Class, ...)                                                   \
  STEPOP_REGISTER(                                                                            \
      ::stepop::datasets(), #Class,                                                           \
      [](const ::stepop::Config& params) { return ::stepop::make_component<Class>(params); }, \
      ::stepop::about_class<Class>(__VA_ARGS__))
