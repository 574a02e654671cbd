#include "runtime/train/iterator/splits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <sstream>
#include <thread>
#include <unordered_set>

#include "runtime/core/base/error.h"
#include "runtime/core/base/interrupt_scope.h"
#include "runtime/core/config/batch_size.h"
#include "runtime/core/system/usable_processors.h"
#include "runtime/data/example_random.h"
#include "runtime/data/notice.h"
#include "runtime/data/stream_batches.h"
#include "runtime/data/stream_dataset.h"
#include "runtime/train/keys/own_keys.h"
#include "runtime/train/when/duration.h"

namespace stepop {
namespace {

/// For the random choice of the fixed examples, which is the same in every run with a dataset.
constexpr uint64_t kFixedExamplesSeed = 1;

/// In seconds: about the cost of handing a batch from one thread to another.
constexpr double kQuickBatch = 50e-6;

/// Each process shows all fixed examples.
constexpr int64_t kOneProcess = 1;

/// A single batch, as the source of a loader.
class OneBatch : public BatchSource {
 public:
  OneBatch(std::string name, std::function<Batch()> load)
      : name_(std::move(name)), load_(std::move(load)) {}
  const std::string& name() const override { return name_; }
  bool is_in_order() const override { return false; }
  TakenBatch take(int64_t /*number*/, const InterruptCheck& /*interrupt*/) override {
    return {.load = load_};
  }

 private:
  const std::string name_;
  const std::function<Batch()> load_;
};

}  // namespace

Splits::Splits(const Config& config, uint64_t seed, c10::Device device, int local_processes,
               int processes)
    : config_(config),
      seed_(seed),
      device_(device),
      channels_last_(own_key<bool>(config, "channels_last")),
      local_processes_(local_processes),
      processes_(processes) {}

const Dataset& Splits::dataset(const std::string& split) {
  auto& dataset = parts_->datasets[split];
  if (!dataset) {
    const std::string path = "datasets/" + split;
    dataset = with_std_exceptions(path, [&] { return datasets().build(config_, path); });
    const bool is_stream = dynamic_cast<const StreamDataset*>(dataset.get()) != nullptr;
    if (!is_stream && dataset->size() <= 0) {
      throw config_.error(path, "the dataset is empty: it has no example");
    }
  }
  return *dataset;
}

const StreamDataset* Splits::stream(const std::string& split) {
  return dynamic_cast<const StreamDataset*>(&dataset(split));
}

int64_t Splits::examples(const std::string& split) {
  const StreamDataset* const data = stream(split);
  if (data == nullptr) return dataset(split).size();
  try {
    return data->examples().value_or(0);
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& error) {
    throw Error(fmt::format("datasets/{}: {}", split, error.what()));
  }
}

const BatchOrder& Splits::order(const std::string& split) {
  auto& order = parts_->orders[split];
  if (order) return *order;
  const Dataset& data = dataset(split);
  const bool is_train = split == "train";
  const std::string path = "samplers/" + split;
  const uint64_t seed = mix_seed({seed_, seed_of(split)});
  BatchOrderOptions options;
  options.batch_size = read_batch_size(config_, processes_);
  options.drop_last = is_train && own_key<bool>(config_, "drop_last");
  options.max_batches = is_train ? config_.get_at_least("max_batches_per_epoch", 1, 0) : 0;
  options.seed = seed;
  std::unique_ptr<Sampler> sampler;
  if (stream(split) != nullptr) {
    if (config_.has(path)) {
      throw config_.error(
          path,
          fmt::format("datasets/{} is a stream, which has no sampler: its own key \"shuffle\" "
                      "says how it is shuffled",
                      split));
    }
    sampler = running_numbers(split, options);
    options.max_batches = 0;
  } else {
    const bool is_given = config_.has(path);
    sampler = is_given ? samplers().build(config_, path, data, seed)
                       : samplers().factory("shuffle", config_, path)(config_.at(path), data, seed);
    // Logs should be comparable with each other: no short batch, and no batch of a single class.
    if (!is_train && !is_given) options.drop_last = data.size() >= options.batch_size;
  }
  order = std::make_unique<BatchOrder>("datasets/" + split, std::move(sampler), options);
  return *order;
}

/// An epoch of a stream is `max_batches_per_epoch` full batches, or one pass.
std::unique_ptr<Sampler> Splits::running_numbers(const std::string& split,
                                                 const BatchOrderOptions& options) {
  if (options.max_batches > 0) {
    return std::make_unique<RunningNumbers>(options.max_batches * options.batch_size);
  }
  if (const int64_t known = examples(split); known > 0) {
    return std::make_unique<RunningNumbers>(known);
  }
  // Only a training has epochs.
  if (split != "train") return std::make_unique<RunningNumbers>(options.batch_size);
  throw config_.error(
      "datasets/" + split,
      "a stream that does not know how many examples it has: nothing says how long "
      "an epoch is. Give max_batches_per_epoch, or the number as \"examples\" here");
}

const BatchOrder& Splits::evaluation_order(const std::string& split, int64_t max_batches) {
  auto& order = parts_->evaluation_orders[{split, max_batches}];
  if (order) return *order;
  const Dataset& data = dataset(split);
  const std::string name = "datasets/" + split;
  BatchOrderOptions options;
  options.batch_size = read_test_batch_size(config_);
  options.max_batches = max_batches;
  options.seed = evaluation_seed(seed_, split);
  std::unique_ptr<Sampler> sampler;
  if (stream(split) != nullptr) {
    int64_t number = examples(split);
    if (number == 0) number = max_batches * options.batch_size;
    if (number == 0) {
      throw config_.error(name,
                          "a stream that does not know how many examples it has cannot be "
                          "evaluated: give the number as \"examples\" here, or max_batches of the "
                          "evaluation");
    }
    sampler = std::make_unique<RunningNumbers>(number);
  } else {
    sampler = samplers().factory("sequential", config_, name)(config_.at(name), data, seed_);
  }
  order = std::make_unique<BatchOrder>(name, std::move(sampler), options);
  return *order;
}

LoaderOptions Splits::loader_options() const {
  const int64_t cores = usable_processors() / local_processes_;
  LoaderOptions options;
  constexpr int64_t kMost = 1024;
  options.workers =
      config_.get_between("n_data_processes", 0, kMost, std::clamp<int64_t>(cores / 2, 1, 8));
  options.prefetch = own_key<int64_t>(config_, "n_prefetch");
  options.quick = kQuickBatch;
  options.device = device_;
  options.channels_last = channels_last_;
  if (config_.has("data_timeout")) options.timeout = read_seconds(config_, "data_timeout");
  options.owner = parts_;
  return options;
}

Batch Splits::loaded(const std::string& split, std::function<Batch()> load) const {
  LoaderOptions options = loader_options();
  options.workers = 0;
  options.interrupt = InterruptScope::current();
  return Loader(std::make_shared<OneBatch>("datasets/" + split, std::move(load)), options).next();
}

std::shared_ptr<BatchSource> Splits::source(const std::string& split, const BatchOrder& order,
                                            SourceStart start, BatchSlice slice) {
  const StreamDataset* const data = stream(split);
  if (data == nullptr) return std::make_shared<DatasetBatches>(dataset(split), order, slice);
  SequenceOptions options;
  const auto of_training = parts_->orders.find(split);
  options.is_one_pass = of_training == parts_->orders.end() || of_training->second.get() != &order;
  options.shuffles = split == "train" && !options.is_one_pass && data->settings().shuffles;
  options.buffer = options.shuffles ? data->settings().buffer : 1;
  options.seed = mix_seed({seed_, seed_of(split)});
  return std::make_shared<StreamBatches>(*data, order, options, std::move(start), slice);
}

std::vector<std::vector<std::string>> Splits::record_names(const std::string& split,
                                                           SourceStart start, int64_t count) {
  std::vector<std::vector<std::string>> names;
  if (stream(split) == nullptr) return names;
  const int64_t first = start.batch;
  const auto batches = source(split, order(split), std::move(start));
  for (int64_t i = 0; i < count; ++i) {
    auto& stream_batches = dynamic_cast<StreamBatches&>(*batches);
    names.push_back(stream_batches.names(first + i, InterruptScope::current()));
  }
  return names;
}

Batch Splits::batch(const std::string& split, const BatchOrder& order, int64_t number) {
  if (const StreamDataset* const data = stream(split)) {
    const auto size = static_cast<int64_t>(order.indices(number).size());
    const auto first = std::make_shared<BatchOrder>(
        order.name(), std::make_unique<RunningNumbers>(size),
        BatchOrderOptions{.batch_size = size, .seed = evaluation_seed(seed_, split)});
    return loaded(split, [data, first] {
      StreamBatches batches(*data, *first, {.is_one_pass = true}, {});
      return batches.take(0, InterruptScope::current()).load();
    });
  }
  return loaded(split, [&data = dataset(split), indices = order.indices(number),
                        randoms = order.randoms(number)]() mutable {
    return load_batch(data, indices, randoms);
  });
}

const Batch& Splits::fixed_examples(const std::string& split) {
  const auto found = fixed_examples_.find(split);
  if (found != fixed_examples_.end()) return found->second;
  const Dataset& data = dataset(split);
  const bool is_stream = stream(split) != nullptr;
  const int64_t size = examples(split);
  const std::string path = "fixed_example_indices/" + split;
  std::vector<int64_t> indices;
  if (config_.has(path)) {
    indices = config_.get<std::vector<int64_t>>(path);
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] < 0 || (indices[i] >= size && size > 0)) {
        throw config_.error(path + "/" + std::to_string(i),
                            fmt::format("no example {}: the dataset has {}", indices[i], size));
      }
    }
    if (indices.empty()) throw config_.error(path, "expected at least one index");
  } else if (is_stream) {
    // The first examples: others would have to be searched in the stream.
    const int64_t batch_size = read_batch_size(config_, kOneProcess);
    indices.resize(static_cast<size_t>(size > 0 ? std::min(batch_size, size) : batch_size));
    std::iota(indices.begin(), indices.end(), 0);
  } else {
    const int64_t count = std::min(read_batch_size(config_, kOneProcess), size);
    Random random(mix_seed({kFixedExamplesSeed, seed_of(split)}));
    std::unordered_set<int64_t> taken;
    while (static_cast<int64_t>(indices.size()) < count) {
      const int64_t index = random.below(size);
      if (taken.insert(index).second) indices.push_back(index);
    }
  }
  std::vector<Random> randoms;
  randoms.reserve(indices.size());
  for (const int64_t index : indices) {
    randoms.push_back(random_of_fixed_example(index));
  }
  const auto load = [&data, indices, randoms]() mutable {
    return load_batch(data, indices, randoms);
  };
  return fixed_examples_.emplace(split, loaded(split, load)).first->second;
}

std::string Splits::notices() const {
  std::vector<std::string> lines;
  for (const auto& [split, dataset] : parts_->datasets) {
    std::istringstream text(dataset ? dataset->notice() : "");
    for (std::string line; std::getline(text, line);) {
      const bool is_warning = line.starts_with(kWarning);
      lines.push_back(fmt::format("{}datasets/{}: {}", is_warning ? kWarning : "", split,
                                  line.substr(is_warning ? kWarning.size() : 0)));
    }
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

std::vector<std::string> Splits::take_warnings() {
  std::vector<std::string> lines;
  for (const auto& [split, dataset] : parts_->datasets) {
    const auto* stream = dynamic_cast<const StreamDataset*>(dataset.get());
    const std::string text = stream == nullptr ? "" : stream->skipped()->news();
    if (!text.empty()) lines.push_back(fmt::format("datasets/{}: {}", split, text));
  }
  return lines;
}

void Splits::declare(const std::string& split) const {
  declare_component(datasets(), config_, "datasets/" + split);
  declare_component(samplers(), config_, "samplers/" + split);
}

}  // namespace stepop
