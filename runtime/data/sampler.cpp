#include "runtime/data/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace stepop {

SamplerRegistry& samplers() {
  static SamplerRegistry registry("sampler");
  return registry;
}

namespace {

std::vector<int64_t> ascending(int64_t size) {
  std::vector<int64_t> indices(static_cast<size_t>(size));
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

class Sequential : public Sampler {
 public:
  Sequential(const Config&, const Dataset& dataset, uint64_t) : size_(dataset.size()) {}
  std::vector<int64_t> order(int64_t) const override { return ascending(size_); }

 private:
  int64_t size_;
};

class Shuffle : public Sampler {
 public:
  Shuffle(const Config&, const Dataset& dataset, uint64_t seed)
      : size_(dataset.size()), seed_(seed) {}

  /// Fisher-Yates; not std::shuffle, whose result differs between standard libraries.
  std::vector<int64_t> order(int64_t epoch) const override {
    std::vector<int64_t> indices = ascending(size_);
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

/// Draws with replacement, in proportion to a weight per example.
class Weighted : public Sampler {
 public:
  Weighted(const Config& params, const Dataset& dataset, uint64_t seed) : seed_(seed) {
    const bool balances = params.has("balance");
    if (balances == params.has("weights")) {
      throw params.error("",
                         "the sampler weighted needs either \"balance\", a key of classes that "
                         "shall come equally often, or \"weights\", a key of weights");
    }
    const std::string path = balances ? "balance" : "weights";
    const auto key = params.get<std::string>(path);
    const at::Tensor labels = dataset.labels(key);
    if (!labels.defined() || labels.dim() != 1 || labels.size(0) != dataset.size()) {
      throw params.error(path, fmt::format("the dataset has no label \"{}\" with one value per "
                                           "example that is known without loading the examples",
                                           key));
    }
    const at::Tensor values = labels.to(at::kDouble).contiguous();
    const double* data = values.const_data_ptr<double>();
    std::vector<double> weights(data, data + values.numel());
    for (const double value : weights) {
      if (std::isfinite(value) && (balances || value >= 0)) continue;
      throw params.error(
          path, fmt::format("the {} of an example is {}; {}", balances ? "class" : "weight", value,
                            balances ? "classes are numbers" : "weights are finite and 0 or more"));
    }
    if (balances) {
      std::map<double, double> count;
      for (const double value : weights) count[value] += 1;
      for (double& value : weights) value = 1 / count[value];
    }
    double total = 0;
    for (const double weight : weights) cumulative_.push_back(total += weight);
    if (!(total > 0)) throw params.error(path, "the weights are all 0");
  }

  std::vector<int64_t> order(int64_t epoch) const override {
    Random random(mix_seed({seed_, static_cast<uint64_t>(epoch)}));
    std::vector<int64_t> indices;
    for (size_t i = 0; i < cumulative_.size(); ++i) {
      const double point = random.uniform() * cumulative_.back();
      const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end(), point);
      indices.push_back(found - cumulative_.begin());
    }
    return indices;
  }

 private:
  uint64_t seed_;
  std::vector<double> cumulative_;
};

STEPOP_REGISTER_SAMPLER(sequential, Sequential, {"The dataset's own order.", {}});
STEPOP_REGISTER_SAMPLER(shuffle, Shuffle, {"A new permutation in each epoch.", {}});
STEPOP_REGISTER_SAMPLER(weighted, Weighted,
                        {"Draws with replacement, by weight.",
                         {{"balance", "null", "label whose classes come equally often"},
                          {"weights", "null", "label that holds each example's weight"}}});

}  // namespace
}  // namespace stepop
