#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/data/dataset.h"
#include "runtime/data/loader.h"
#include "runtime/data/sampler.h"

namespace stepop {

/// The datasets of a run by split: `datasets/train`, `datasets/validation`, .... Each is built when
/// it is first asked for.
class Splits {
 public:
  Splits(const Config& config, uint64_t seed, c10::Device device);

  /// Throws UsageError when the config has no dataset for that split.
  const Dataset& dataset(const std::string& split);

  /// The batches that training steps and logs see: in the order of `samplers/<split>`, by default
  /// shuffled for train and the dataset's own for the others.
  const BatchOrder& order(const std::string& split);

  /// All examples once, in the dataset's own order, for evaluations.
  const BatchOrder& evaluation_order(const std::string& split, int64_t max_batches);

  /// The options of a loader with the config's workers, which may use datasets and orders for
  /// longer than this lives.
  LoaderOptions loader_options() const;

  /// The batch of that number of an order of the split, as a loader gives it.
  Batch batch(const std::string& split, const BatchOrder& order, int64_t number);

  /// The batch that is the same in every log: `fixed_example_indices/<split>`, by default
  /// batch_size examples at random. On the device.
  const Batch& fixed_examples(const std::string& split);

  /// What the datasets that were built say of themselves: a line for each that says something.
  std::string notices() const;

  /// Makes the keys of datasets known that this run does not build.
  void declare(const std::string& split) const;

 private:
  Batch finished(const Batch& batch) const;

  Config config_;
  uint64_t seed_;
  c10::Device device_;
  bool channels_last_;
  struct Parts {
    std::map<std::string, std::unique_ptr<Dataset>> datasets;
    std::map<std::string, std::unique_ptr<BatchOrder>> orders;
    std::map<std::pair<std::string, int64_t>, std::unique_ptr<BatchOrder>> evaluation_orders;
  };
  std::shared_ptr<Parts> parts_ = std::make_shared<Parts>();
  std::map<std::string, Batch> fixed_examples_;
};

}  // namespace stepop
