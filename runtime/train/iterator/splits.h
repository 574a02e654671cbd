#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/config/config.h"
#include "runtime/data/batch_source.h"
#include "runtime/data/dataset.h"
#include "runtime/data/loader.h"
#include "runtime/data/sampler.h"

namespace stepop {

class StreamDataset;

/// The datasets of a run by split: `datasets/train`, `datasets/validation`, .... Each is built on
/// the first request.
class Splits {
 public:
  /// `processes` train together; `local_processes` run on this machine and share its cores.
  Splits(const Config& config, uint64_t seed, c10::Device device, int local_processes = 1,
         int processes = 1);

  /// Throws UsageError when the config has no dataset for that split. A stream is a StreamDataset,
  /// whose `size()` throws when the size is unknown.
  const Dataset& dataset(const std::string& split);

  /// The number of examples of the split; 0 for a stream of unknown size.
  int64_t examples(const std::string& split);

  /// The batches of training steps and logs, in the order of `samplers/<split>`, by default
  /// shuffled; with the default, logs of splits other than train leave out an epoch's last batch if
  /// it is smaller. The order of a stream consists of the running numbers of its examples. Throws
  /// UsageError for a stream without a known number of batches per epoch.
  const BatchOrder& order(const std::string& split);

  /// All examples once, in the dataset's own order, for evaluations. Throws UsageError for a stream
  /// of unknown size, unless `max_batches` limits it.
  const BatchOrder& evaluation_order(const std::string& split, int64_t max_batches);

  /// The batches of an order of the split, for a loader whose first batch is `start.batch`; the
  /// state in `start` belongs to a stream. The loader needs `loader_options().owner`. `slice`: this
  /// process's part of each batch.
  std::shared_ptr<BatchSource> source(const std::string& split, const BatchOrder& order,
                                      SourceStart start = {}, BatchSlice slice = {});

  /// The names of the records in `count` batches of a stream, which reads these batches again;
  /// empty for a dataset.
  std::vector<std::vector<std::string>> record_names(const std::string& split, SourceStart start,
                                                     int64_t count);

  /// The options of a loader with the config's workers. The loader may use datasets and orders
  /// longer than this object lives.
  LoaderOptions loader_options() const;

  /// The batch with that number in an order of the split, as a loader returns it. For a stream: a
  /// batch of that size from the stream's beginning, because all earlier batches would have to be
  /// read as well.
  Batch batch(const std::string& split, const BatchOrder& order, int64_t number);

  /// The batch that is the same in every log: `fixed_example_indices/<split>`, by default
  /// batch_size random examples (batch_size of one process). On the device.
  const Batch& fixed_examples(const std::string& split);

  /// The notices of the datasets that were built; a warning's line begins with kWarning.
  std::string notices() const;

  /// New warnings about records that streams left out, one line per split.
  std::vector<std::string> take_warnings();

  /// Marks the keys of datasets as known that this run does not build.
  void declare(const std::string& split) const;

 private:
  /// What `load` returns, on the device. `load` may run in a thread that is abandoned, so it owns
  /// what it uses, or uses what `parts_` owns.
  Batch loaded(const std::string& split, std::function<Batch()> load) const;
  /// Null for a dataset with an index.
  const StreamDataset* stream(const std::string& split);
  std::unique_ptr<Sampler> running_numbers(const std::string& split,
                                           const BatchOrderOptions& options);

  Config config_;
  uint64_t seed_;
  c10::Device device_;
  bool channels_last_;
  int local_processes_;
  int processes_;
  struct Parts {
    std::map<std::string, std::unique_ptr<Dataset>> datasets;
    std::map<std::string, std::unique_ptr<BatchOrder>> orders;
    std::map<std::pair<std::string, int64_t>, std::unique_ptr<BatchOrder>> evaluation_orders;
  };
  std::shared_ptr<Parts> parts_ = std::make_shared<Parts>();
  std::map<std::string, Batch> fixed_examples_;
};

}  // namespace stepop
