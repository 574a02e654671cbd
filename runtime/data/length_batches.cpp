#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text.h"
#include "runtime/data/sampler.h"

namespace stepop {
namespace {

/// Examples whose lengths differ little.
struct Bucket {
  int64_t longest = 0;
  std::vector<int64_t> indices;
};

void shuffle(std::vector<int64_t>& items, Random& random) {
  for (auto i = static_cast<int64_t>(items.size()) - 1; i > 0; --i) {
    std::swap(items[static_cast<size_t>(i)], items[static_cast<size_t>(random.below(i + 1))]);
  }
}

/// Examples of nearly equal length share a batch, so that padding them costs little.
///
/// The examples are put into buckets by their length, once. In each epoch, each bucket is shuffled
/// and cut into batches; the remaining examples join the next bucket, which has longer examples.
/// Then the order of the batches is shuffled. So every epoch has the same number of batches, and
/// only one batch, from the last bucket, may be too small: that batch is the last of the epoch.
class LengthBatches : public BatchSampler {
 public:
  struct Params {
    std::string key = "length";
    std::optional<int64_t> tokens;
    double spread = 0.125;

    void declare(Parameters& p) {
      p.add("key", key, "label that holds each example's length");
      p.add("tokens", tokens,
            "most tokens of a batch, padding counted, beside batch_size examples; null: no limit",
            at_least(1));
      p.add("spread", spread, "by how much lengths of one batch differ, but for what is left over",
            at_least(0).at_most(1000));
    }
  };

  LengthBatches(const Params& params, const Config& config, const Dataset& dataset, uint64_t seed)
      : seed_(seed), tokens_(params.tokens) {
    fill_buckets(lengths_of(config, dataset, params.key), params.spread, config);
  }

  Epoch epoch(int64_t epoch, int64_t batch_size) const override {
    Random random(mix_seed({seed_, static_cast<uint64_t>(epoch)}));
    Epoch made;
    std::vector<std::pair<int64_t, int64_t>> batches;  // begin and end in `order`
    std::vector<int64_t> order;
    std::vector<int64_t> left;
    for (size_t i = 0; i < buckets_.size(); ++i) {
      std::vector<int64_t> members = buckets_[i].indices;
      const bool is_last = i + 1 == buckets_.size();
      if (!is_last) shuffle(members, random);
      // The examples that remain from the shorter bucket come first, so that they are not carried
      // on again.
      left.insert(left.end(), members.begin(), members.end());
      if (is_last) shuffle(left, random);
      const auto room = static_cast<size_t>(room_for(buckets_[i].longest, batch_size));
      const size_t taken = left.size() / room * room;
      for (size_t first = 0; first < taken; first += room) {
        const auto begin = static_cast<int64_t>(order.size() + first);
        batches.emplace_back(begin, begin + static_cast<int64_t>(room));
      }
      const auto middle = left.begin() + static_cast<std::ptrdiff_t>(taken);
      order.insert(order.end(), left.begin(), middle);
      left.erase(left.begin(), middle);
    }
    std::vector<int64_t> places(batches.size());
    for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int64_t>(i);
    shuffle(places, random);
    made.order.reserve(order.size() + left.size());
    for (const int64_t place : places) {
      const auto [first, end] = batches[static_cast<size_t>(place)];
      made.order.insert(made.order.end(), order.begin() + first, order.begin() + end);
      made.ends.push_back(static_cast<int64_t>(made.order.size()));
    }
    made.has_rest = !left.empty();
    if (made.has_rest) {
      made.order.insert(made.order.end(), left.begin(), left.end());
      made.ends.push_back(static_cast<int64_t>(made.order.size()));
    }
    return made;
  }

 private:
  static std::vector<int64_t> lengths_of(const Config& params, const Dataset& dataset,
                                         const std::string& key) {
    const at::Tensor labels = dataset.labels(key);
    const bool is_right = labels.defined() && labels.dim() == 1 &&
                          labels.size(0) == dataset.size() && !labels.is_complex();
    if (!is_right) {
      throw params.error("key",
                         fmt::format("the dataset has no label \"{}\" with one number for each "
                                     "example; its labels are: {}",
                                     key, list_text(dataset.label_keys())));
    }
    const at::Tensor values = labels.to(at::kLong).contiguous();
    const auto* data = values.const_data_ptr<int64_t>();
    return {data, data + values.numel()};
  }

  void fill_buckets(const std::vector<int64_t>& lengths, double spread, const Config& params) {
    int64_t longest = 0;
    for (size_t i = 0; i < lengths.size(); ++i) {
      if (lengths[i] < 0) {
        throw params.error("key", fmt::format("the length of example {} is {}", i, lengths[i]));
      }
      if (tokens_ && lengths[i] > *tokens_) {
        throw params.error(
            "tokens", fmt::format("a batch of {} has no room for example {}, which has {}: cut it "
                                  "(\"length\" of Text) or leave it out (the dataset Subset)",
                                  with_thousands(*tokens_), i, with_thousands(lengths[i])));
      }
      longest = std::max(longest, lengths[i]);
    }
    // Lengths up to 8 share a bucket; each later bucket ends at `spread` times the limit before.
    std::vector<int64_t> limits = {8};
    while (limits.back() < longest) {
      const auto step = static_cast<double>(limits.back()) * spread;
      limits.push_back(limits.back() + std::max<int64_t>(static_cast<int64_t>(step), 1));
    }
    std::vector<Bucket> buckets(limits.size());
    for (size_t i = 0; i < lengths.size(); ++i) {
      const auto limit = std::lower_bound(limits.begin(), limits.end(), lengths[i]);
      Bucket& bucket = buckets[static_cast<size_t>(limit - limits.begin())];
      bucket.longest = std::max(bucket.longest, lengths[i]);
      bucket.indices.push_back(static_cast<int64_t>(i));
    }
    for (auto& bucket : buckets) {
      if (!bucket.indices.empty()) buckets_.push_back(std::move(bucket));
    }
  }

  /// The number of examples in a batch, with padding counted.
  int64_t room_for(int64_t longest, int64_t batch_size) const {
    if (!tokens_ || longest == 0) return batch_size;
    return std::clamp<int64_t>(*tokens_ / longest, 1, batch_size);
  }

  uint64_t seed_;
  std::optional<int64_t> tokens_;
  std::vector<Bucket> buckets_;  ///< Sorted, the shortest first.
};

STEPOP_REGISTER_SAMPLER(
    lengths, LengthBatches,
    {"Shuffled batches of examples of nearly equal length, of a number of tokens at most."});

}  // namespace
}  // namespace stepop
