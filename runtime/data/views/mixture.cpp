#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/number_text.h"
#include "runtime/data/views/index_view.h"

namespace stepop {
namespace {

/// Whole weights with a sum up to this number are used unchanged; other weights become shares of
/// this number.
constexpr int64_t kMostPeriod = 10'000;

/// The weights as whole numbers, each at least 1.
std::vector<int64_t> whole_weights(const std::vector<double>& weights) {
  double sum = 0;
  bool are_whole = true;
  for (const double weight : weights) {
    sum += weight;
    are_whole = are_whole && weight == std::floor(weight);
  }
  std::vector<int64_t> whole;
  int64_t divisor = 0;
  for (const double weight : weights) {
    const double scaled = are_whole && sum <= static_cast<double>(kMostPeriod)
                              ? weight
                              : weight / sum * static_cast<double>(kMostPeriod);
    whole.push_back(std::max<int64_t>(1, std::llround(scaled)));
    divisor = std::gcd(divisor, whole.back());
  }
  for (int64_t& weight : whole) weight /= divisor;
  return whole;
}

/// Examples of several datasets in the proportions of weights. An index alone determines its
/// example, so an index gives the same example in each epoch, and labels are known without loading
/// examples. The sampler makes the order of each epoch.
class Mixture : public IndexView {
 public:
  struct Params {
    std::vector<Source> datasets;
    std::vector<double> weights;
    std::optional<int64_t> size;
    std::string source_key;

    void declare(Parameters& p) {
      p.require("datasets", datasets, "a list of datasets with the same keys");
      p.add("source_key", source_key,
            "adds under this key which dataset an example is from: 0, 1, ...");
      p.require("weights", weights, "one for each; to about one in 10,000",
                above(0).below(std::numeric_limits<double>::infinity()));
      p.add("size", size,
            "number of examples; none: until every example of each dataset has come, while those "
            "of the others are repeated",
            at_least(1));
    }
  };

  Mixture(Params params, const Config& config)
      : IndexView(std::move(params.datasets), params.source_key),
        weights_(whole_weights(params.weights)) {
    if (weights_.size() != sources().size()) {
      throw config.error("weights", fmt::format("expected a weight for each of the {} datasets, "
                                                "found {}",
                                                sources().size(), weights_.size()));
    }
    for (size_t i = 0; i < sources().size(); ++i) {
      if (sources()[i].size() > 0) continue;
      throw config.error("datasets/" + std::to_string(i), "it is empty: it has no example");
    }
    make_pattern();
    size_ = params.size ? *params.size : whole_size(config);
    for (size_t i = 0; i < sources().size(); ++i) counts_.push_back(count_before(i, size_));
  }

  int64_t size() const override { return size_; }

 protected:
  Place place_of(int64_t index) const override {
    const auto period = static_cast<int64_t>(pattern_.size());
    const auto& [source, rank] = pattern_[static_cast<size_t>(index % period)];
    const int64_t number = index / period * weights_[source] + rank;
    const int64_t size = sources()[source].size();
    if (counts_[source] >= size) return {source, number % size};
    // A source that gives only some of its examples gives them evenly.
    __extension__ using int128 = __int128;
    return {source, static_cast<int64_t>(static_cast<int128>(number) * size / counts_[source])};
  }

 private:
  /// A position of the period: its source, and the number of that source's examples before it.
  struct Turn {
    size_t source;
    int64_t rank;
  };

  /// Spreads each source over the period as evenly as its weight allows.
  void make_pattern() {
    const int64_t period = std::accumulate(weights_.begin(), weights_.end(), int64_t{0});
    std::vector<int64_t> used(weights_.size());
    for (int64_t position = 0; position < period; ++position) {
      size_t next = 0;
      int64_t most = std::numeric_limits<int64_t>::min();
      for (size_t i = 0; i < weights_.size(); ++i) {
        const int64_t behind = (position + 1) * weights_[i] - used[i] * period;
        if (behind > most) next = i, most = behind;
      }
      pattern_.push_back({next, used[next]++});
    }
  }

  /// The number of examples before `end` that come from a source.
  int64_t count_before(size_t source, int64_t end) const {
    const auto period = static_cast<int64_t>(pattern_.size());
    int64_t count = end / period * weights_[source];
    for (int64_t i = 0; i < end % period; ++i) {
      count += pattern_[static_cast<size_t>(i)].source == source ? 1 : 0;
    }
    return count;
  }

  /// The size at which each example of each source has occurred.
  int64_t whole_size(const Config& config) const {
    const auto period = static_cast<int64_t>(pattern_.size());
    int64_t most = 0;
    for (size_t source = 0; source < weights_.size(); ++source) {
      const int64_t last = sources()[source].size() - 1;
      if (last / weights_[source] >= std::numeric_limits<int64_t>::max() / period - 1) {
        throw config.error("", "it has more examples than can be counted: give its size");
      }
      const int64_t rank = last % weights_[source];
      int64_t position = 0;
      while (pattern_[static_cast<size_t>(position)].source != source ||
             pattern_[static_cast<size_t>(position)].rank != rank) {
        ++position;
      }
      most = std::max(most, last / weights_[source] * period + position + 1);
    }
    return most;
  }

  std::vector<int64_t> weights_;
  std::vector<Turn> pattern_;
  int64_t size_ = 0;
  std::vector<int64_t> counts_;  ///< The number of examples from each source.
};

STEPOP_REGISTER_DATASET(Mixture, {"Examples of several datasets in the proportions of weights."});

}  // namespace
}  // namespace stepop
