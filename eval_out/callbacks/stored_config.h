#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval_out/read/eval_reader.h"
#include "runtime/core/config/config.h"
#include "runtime/core/config/resolve.h"
#include "runtime/data/dataset.h"

namespace stepop {

/// The config that is stored in a file of outputs. Throws UsageError when there is none.
Value read_stored_config(const EvalFile& file);

/// The config to run callbacks with over a file of outputs: the one that is stored in it, with
/// `eval_hook/eval_callbacks` cut down to those that are asked for.
///
/// `callbacks` has one text each: a name of the stored config (`accuracy`), which brings its
/// parameters; a registered callback (`confusion_matrix`); `my_name:my_callback`; a Python script
/// (`./my_report.py`, with the name `my_report`). Without any, those of the stored config.
///
/// `base` are config files that are laid over the stored config: further callbacks, their
/// parameters, a dataset that moved.
///
/// `overrides` change parameters, `confusion_matrix/normalize`, and other keys of the stored
/// config, such as `datasets/validation/path` of a dataset that moved.
///
/// `trusted` is the config of the run that the file lies in; null: it lies in none. A file may be
/// from anywhere, so a script, or a `python` to run it with, is taken from the stored config only
/// when `trusted` has the same; those that the user gives are taken always.
///
/// Throws UsageError for no callback at all, the same name twice, an unknown callback or script,
/// a script that only the file names, and a key that nobody reads.
Config stored_config(const EvalFile& file, const std::vector<std::string>& callbacks,
                     const std::vector<std::string>& base, std::vector<Override> overrides,
                     const Value* trusted);

/// The dataset that was evaluated, for callbacks that run afterwards: the component at `path` of
/// the config, built when it is first asked for anything. When it cannot be built - its files
/// moved, it is not in this program - every function throws Error that says so.
class StoredDataset : public Dataset {
 public:
  StoredDataset(Config config, std::string path)
      : config_(std::move(config)), path_(std::move(path)) {}

  int64_t size() const override { return built().size(); }
  Example get(int64_t index, Random& random) const override { return built().get(index, random); }
  std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                 std::span<Random> randoms) const override {
    return built().get_batch(indices, randoms);
  }
  at::Tensor labels(std::string_view key) const override { return built().labels(key); }
  std::vector<std::string> label_keys() const override { return built().label_keys(); }
  std::string notice() const override { return built().notice(); }
  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const override {
    return built().collate(examples, std::move(indices));
  }

 private:
  const Dataset& built() const;

  Config config_;
  std::string path_;
  mutable std::once_flag once_;
  mutable std::unique_ptr<Dataset> dataset_;
  mutable std::string problem_;
};

}  // namespace stepop
