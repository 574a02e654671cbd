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

/// The config with which callbacks run over a file of outputs: the config that is stored in the
/// file, with `eval_hook/eval_callbacks` reduced to the requested callbacks.
///
/// `callbacks` has one text for each callback: a name in the stored config (`accuracy`), whose
/// parameters are used; a registered callback (`confusion_matrix`); `my_name:my_callback`; or a
/// Python script (`./my_report.py`, with the name `my_report`). If empty, all callbacks of the
/// stored config run.
///
/// `base` are config files that override the stored config: further callbacks, their parameters, a
/// dataset that moved.
///
/// `overrides` change parameters, `confusion_matrix/normalize`, and other keys of the stored
/// config, such as `datasets/validation/path` of a dataset that moved.
///
/// `trusted` is the config of the run in whose folder the file is; null if there is none. A file
/// may come from anywhere, so a script, or the `python` that runs it, is taken from the stored
/// config only when `trusted` has the same value. Values from the user are always taken.
///
/// Throws UsageError when there are no callbacks, for a name that occurs twice, an unknown callback
/// or script, a script that only the stored config names, and a key that no component reads.
Config stored_config(const EvalFile& file, const std::vector<std::string>& callbacks,
                     const std::vector<std::string>& base, std::vector<Override> overrides,
                     const Value* trusted);

/// The evaluated dataset, for callbacks that run afterwards: the component at `path` of the config,
/// built at the first call of a function. If it cannot be built, because its files moved or its
/// class is not in this program, every function throws an Error that says so.
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
