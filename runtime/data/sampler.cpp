#include "runtime/data/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <string>

#include "runtime/core/base/number_text.h"
#include "runtime/data/example_random.h"

namespace stepop {

SamplerRegistry& samplers() {
  static SamplerRegistry registry("sampler");
  return registry;
}

namespace {

/// Up to this size a shuffled order is stored, which takes at most a second and 128 MB.
constexpr int64_t kMostStored = int64_t{1} << 24;

class Sequential : public ComputedSampler {
 public:
  Sequential(const Config&, const Dataset& dataset, uint64_t) : size_(dataset.size()) {}

  int64_t length() const override { return size_; }

  std::vector<int64_t> indices(int64_t, int64_t first, int64_t count) const override {
    std::vector<int64_t> indices(static_cast<size_t>(count));
    std::iota(indices.begin(), indices.end(), first);
    return indices;
  }

 private:
  int64_t size_;
};

/// Fisher-Yates; not std::shuffle, whose result differs between standard libraries.
class StoredShuffle : public Sampler {
 public:
  StoredShuffle(int64_t size, uint64_t seed) : size_(size), seed_(seed) {}

  std::vector<int64_t> order(int64_t epoch) const override {
    std::vector<int64_t> indices(static_cast<size_t>(size_));
    std::iota(indices.begin(), indices.end(), 0);
    Random random(mix_seed({seed_, static_cast<uint64_t>(epoch)}));
    for (int64_t i = size_ - 1; i > 0; --i) {
      std::swap(indices[static_cast<size_t>(i)], indices[static_cast<size_t>(random.below(i + 1))]);
    }
    return indices;
  }

 private:
  int64_t size_;
  uint64_t seed_;
};

/// A keyed permutation of 0 .. size-1: a Feistel network (Luby and Rackoff 1988) over the next
/// power of two. A result beyond the size is sent through the network again until it is below the
/// size. This ends, because each cycle of the larger permutation returns to its start (Black and
/// Rogaway 2002).
class Permutation {
 public:
  Permutation(int64_t size, uint64_t key) : size_(static_cast<uint64_t>(size)) {
    // Halves of one or two bits are too few for rounds to mix.
    const int bits = std::max(static_cast<int>(std::bit_width(size_ - 1)), 8);
    low_bits_ = bits / 2;
    high_bits_ = bits - low_bits_;
    Random random(key);
    for (uint64_t& round_key : keys_) round_key = random();
  }

  int64_t operator()(int64_t position) const {
    auto x = static_cast<uint64_t>(position);
    do x = network(x);
    while (x >= size_);
    return static_cast<int64_t>(x);
  }

 private:
  /// The first `bits` bits of a number that depends on `key` and `half`.
  static uint64_t mixed(uint64_t key, uint64_t half, int bits) {
    return Random(key ^ half)() >> (64 - bits);
  }

  uint64_t network(uint64_t x) const {
    uint64_t high = x >> low_bits_;
    uint64_t low = x & ((uint64_t{1} << low_bits_) - 1);
    for (size_t round = 0; round < keys_.size(); round += 2) {
      low ^= mixed(keys_[round], high, low_bits_);
      high ^= mixed(keys_[round + 1], low, high_bits_);
    }
    return high << low_bits_ | low;
  }

  uint64_t size_;
  int low_bits_;
  int high_bits_;
  std::array<uint64_t, 8> keys_;  ///< One key for each round.
};

class ComputedShuffle : public ComputedSampler {
 public:
  ComputedShuffle(int64_t size, uint64_t seed) : size_(size), seed_(seed) {}

  int64_t length() const override { return size_; }

  std::vector<int64_t> indices(int64_t epoch, int64_t first, int64_t count) const override {
    const Permutation permutation(size_, mix_seed({seed_, static_cast<uint64_t>(epoch)}));
    std::vector<int64_t> indices(static_cast<size_t>(count));
    for (int64_t& index : indices) index = permutation(first++);
    return indices;
  }

  std::string algorithm() const override { return "computed"; }

 private:
  int64_t size_;
  uint64_t seed_;
};

struct ShuffleParams {
  std::optional<std::string> order;

  void declare(Parameters& p) {
    p.add("order", order,
          "stored: 8 bytes an example; computed: no memory, for any number of examples; null: "
          "stored for up to 2^24 examples",
          one_of({"stored", "computed"}));
  }
};

std::unique_ptr<Sampler> make_shuffle(const Config& config, const Dataset& dataset, uint64_t seed) {
  const auto params = read_parameters<ShuffleParams>(config);
  const int64_t size = dataset.size();
  const bool is_stored = params.order ? *params.order == "stored" : size <= kMostStored;
  if (is_stored) return std::make_unique<StoredShuffle>(size, seed);
  return std::make_unique<ComputedShuffle>(size, seed);
}

/// Draws examples with replacement, in proportion to their weights.
class Weighted : public ComputedSampler {
 public:
  struct Params {
    std::optional<std::string> balance;
    std::optional<std::string> weights;

    void declare(Parameters& p) {
      p.add("balance", balance, "label whose classes come equally often");
      p.add("weights", weights, "label that holds each example's weight");
    }
  };

  Weighted(const Params& params, const Config& config, const Dataset& dataset, uint64_t seed)
      : seed_(seed) {
    const bool balances = params.balance.has_value();
    if (balances == params.weights.has_value()) {
      throw config.error("",
                         "the sampler weighted needs either \"balance\", a key of classes that "
                         "should come equally often, or \"weights\", a key of weights");
    }
    const std::string path = balances ? "balance" : "weights";
    const std::string key = balances ? *params.balance : *params.weights;
    const at::Tensor labels = dataset.labels(key);
    if (!labels.defined() || labels.dim() != 1 || labels.size(0) != dataset.size()) {
      throw config.error(path, fmt::format("the dataset has no label \"{}\" with one value per "
                                           "example that is known without loading the examples; "
                                           "a dataset of your own returns them from `labels`",
                                           key));
    }
    const at::Tensor values = labels.to(at::kDouble).contiguous();
    const double* data = values.const_data_ptr<double>();
    cumulative_.assign(data, data + values.numel());
    for (const double value : cumulative_) {
      if (std::isfinite(value) && (balances || value >= 0)) continue;
      throw config.error(
          path, fmt::format("the {} of an example is {}; {}", balances ? "class" : "weight", value,
                            balances ? "classes are numbers" : "weights are finite and 0 or more"));
    }
    if (balances) {
      std::map<double, double> count;
      for (const double value : cumulative_) count[value] += 1;
      for (double& value : cumulative_) value = 1 / count[value];
    }
    double total = 0;
    for (double& weight : cumulative_) weight = total += weight;
    if (!(total > 0)) throw config.error(path, "the weights are all 0");
  }

  int64_t length() const override { return static_cast<int64_t>(cumulative_.size()); }

  std::vector<int64_t> indices(int64_t epoch, int64_t first, int64_t count) const override {
    // Each draw takes one number, and each number advances the generator's state by this constant.
    constexpr uint64_t kStateStep = 0x9e3779b97f4a7c15;
    Random random(mix_seed({seed_, static_cast<uint64_t>(epoch)}) +
                  static_cast<uint64_t>(first) * kStateStep);
    std::vector<int64_t> indices(static_cast<size_t>(count));
    for (int64_t& index : indices) {
      const double point = random.uniform() * cumulative_.back();
      index = std::upper_bound(cumulative_.begin(), cumulative_.end(), point) - cumulative_.begin();
    }
    return indices;
  }

 private:
  uint64_t seed_;
  std::vector<double> cumulative_;  ///< The sum of the weights up to each example.
};

STEPOP_REGISTER_SAMPLER(sequential, Sequential, {"The dataset's own order.", {}});
STEPOP_REGISTER(samplers(), "shuffle", make_shuffle,
                {"A new permutation in each epoch.", parameters_of<ShuffleParams>()});
STEPOP_REGISTER_SAMPLER(weighted, Weighted, {"Draws with replacement, by weight."});

}  // namespace

BatchOrder::BatchOrder(std::string name, std::unique_ptr<Sampler> sampler,
                       BatchOrderOptions options)
    : name_(std::move(name)),
      sampler_(std::move(sampler)),
      computed_(dynamic_cast<const ComputedSampler*>(sampler_.get())),
      batches_(dynamic_cast<const BatchSampler*>(sampler_.get())),
      options_(options) {
  size_ =
      computed_ != nullptr ? computed_->length() : static_cast<int64_t>(stored(0)->order.size());
  if (size_ == 0) throw Error(fmt::format("{}: the dataset is empty", name_));
  if (batches_ != nullptr) {
    const auto first = stored(0);
    batches_per_epoch_ = static_cast<int64_t>(first->ends.size());
    if (options_.drop_last && first->has_rest) --batches_per_epoch_;
  } else {
    const bool is_ragged = size_ % options_.batch_size != 0;
    batches_per_epoch_ = size_ / options_.batch_size + (is_ragged && !options_.drop_last ? 1 : 0);
  }
  if (batches_per_epoch_ == 0) {
    throw Error(
        fmt::format("{}: drop_last leaves no batch: the dataset has {}, a batch {}; "
                    "choose a batch_size of {} or less, or drop_last: false",
                    name_, counted(size_, "example"), options_.batch_size, size_));
  }
  if (options_.max_batches > 0) {
    batches_per_epoch_ = std::min(batches_per_epoch_, options_.max_batches);
  }
}

std::string BatchOrder::warning() const {
  if (options_.batch_size <= size_) return {};
  return fmt::format("batch_size is {}, but {} has only {}: each batch holds all of them",
                     with_thousands(options_.batch_size), name_, counted(size_, "example"));
}

int64_t BatchOrder::examples_in(int64_t batches, int64_t epoch) const {
  if (batches_ != nullptr) {
    if (batches == 0) return 0;
    const auto ends = stored(epoch);
    const auto last = std::min(static_cast<size_t>(batches), ends->ends.size()) - 1;
    return ends->ends[last];
  }
  return batches <= size_ / options_.batch_size ? batches * options_.batch_size : size_;
}

std::shared_ptr<const BatchSampler::Epoch> BatchOrder::stored(int64_t epoch) const {
  const std::lock_guard lock(mutex_);
  const auto slot = static_cast<size_t>(epoch % 2);
  if (stored_epoch_[slot] != epoch) {
    stored_[slot] = std::make_shared<const BatchSampler::Epoch>(
        batches_ != nullptr
            ? batches_->epoch(epoch, options_.batch_size)
            : BatchSampler::Epoch{.order = sampler_->order(epoch), .ends = {}, .has_rest = false});
    stored_epoch_[slot] = epoch;
  }
  return stored_[slot];
}

BatchOrder::Place BatchOrder::place_of(int64_t batch) const {
  const int64_t epoch = batch / batches_per_epoch_;
  const int64_t number = batch % batches_per_epoch_;
  if (batches_ != nullptr) {
    const int64_t first = examples_in(number, epoch);
    return {epoch, first, examples_in(number + 1, epoch) - first};
  }
  const int64_t first = number * options_.batch_size;
  return {epoch, first, std::min(options_.batch_size, size_ - first)};
}

std::vector<int64_t> BatchOrder::indices(int64_t batch) const {
  const auto [epoch, first, count] = place_of(batch);
  if (computed_ != nullptr) return computed_->indices(epoch, first, count);
  const auto kept = stored(epoch);
  return {kept->order.begin() + first, kept->order.begin() + first + count};
}

std::vector<Random> BatchOrder::randoms(int64_t batch) const {
  const auto [epoch, first, count] = place_of(batch);
  std::vector<Random> randoms;
  randoms.reserve(static_cast<size_t>(count));
  for (int64_t position = first; position < first + count; ++position) {
    randoms.push_back(random_at(options_.seed, epoch, position));
  }
  return randoms;
}

}  // namespace stepop
