#pragma once

#include <cstdint>
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

/// The datasets of a run by split: `datasets/train`, `datasets/validation`, .... Each is built when
/// it is first asked for.
class Splits {
 public:
  /// `processes` train together; `local_processes` are those of this machine, which share its
  /// cores.
  Splits(const Config& config, uint64_t seed, c10::Device device, int local_processes = 1,
         int processes = 1);

  /// Throws UsageError when the config has no dataset for that split. A stream is a StreamDataset,
  /// whose `size()` throws when nobody knows it.
  const Dataset& dataset(const std::string& split);

  /// The number of examples of the split; 0 for a stream that does not know it.
  int64_t examples(const std::string& split);

  /// The batches that training steps and logs see: in the order of `samplers/<split>`, by default
  /// shuffled; logs of other splits than train then leave out an epoch's last batch where it is
  /// smaller. The order of a stream is that of the running numbers of its examples. Throws
  /// UsageError for a stream of which nothing says how many batches an epoch has.
  const BatchOrder& order(const std::string& split);

  /// All examples once, in the dataset's own order, for evaluations. Throws UsageError for a stream
  /// that does not know how many there are, unless `max_batches` says it.
  const BatchOrder& evaluation_order(const std::string& split, int64_t max_batches);

  /// The batches of an order of the split, for a loader whose first one is `start.batch`; the state
  /// in `start` is that of a stream. The loader needs `loader_options().owner`.
  /// `slice`: the part of each batch that this process takes.
  std::shared_ptr<BatchSource> source(const std::string& split, const BatchOrder& order,
                                      SourceStart start = {}, BatchSlice slice = {});

  /// The names of the records of `count` batches of a stream, which are read again for it; none for
  /// a dataset.
  std::vector<std::vector<std::string>> record_names(const std::string& split, SourceStart start,
                                                     int64_t count);

  /// The options of a loader with the config's workers, which may use datasets and orders for
  /// longer than this lives.
  LoaderOptions loader_options() const;

  /// The batch of that number of an order of the split, as a loader gives it. Of a stream a batch
  /// of that size from its beginning, since those before it would have to be read as well.
  Batch batch(const std::string& split, const BatchOrder& order, int64_t number);

  /// The batch that is the same in every log: `fixed_example_indices/<split>`, by default
  /// batch_size examples at random (those of one process). On the device.
  const Batch& fixed_examples(const std::string& split);

  /// What the datasets that were built say of themselves: a line for each that says something.
  std::string notices() const;

  /// What is new about records of streams that were left out: a line for each such split.
  std::vector<std::string> take_warnings();

  /// Makes the keys of datasets known that this run does not build.
  void declare(const std::string& split) const;

 private:
  Batch finished(const Batch& batch) const;
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
