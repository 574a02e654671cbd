#include "runtime/data/sampler.h"

#include <ATen/ops/arange.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "runtime/config/yaml_reader.h"
#include "tests/message_of.h"

namespace stepop {
namespace sampler_test {

/// Ten examples: class 0 once, class 1 nine times; weights 0, 1, 2, ...
class Ten : public Dataset {
 public:
  int64_t size() const override { return 10; }
  Example get(int64_t, Random&) const override { return {}; }
  at::Tensor labels(std::string_view key) const override {
    if (key == "class") return at::arange(10).clamp(0, 1);
    if (key == "weight") return at::arange(10).to(at::kFloat);
    if (key == "negative") return at::arange(10).sub(5);
    if (key == "infinite") return at::arange(10).to(at::kDouble).reciprocal();
    if (key == "unknown") return at::arange(10).sub(5).to(at::kDouble).sqrt();
    return {};
  }
};

std::unique_ptr<Sampler> sampler(const std::string& yaml, uint64_t seed = 1) {
  static const Ten dataset;
  const Config config(parse_yaml("sampler: " + yaml, {"test.yaml", 0}));
  return samplers().build(config, "sampler", dataset, seed);
}

std::vector<int64_t> ascending() {
  std::vector<int64_t> indices(10);
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

TEST_CASE("sequential is the dataset's own order in each epoch") {
  CHECK(sampler("sequential")->order(0) == ascending());
  CHECK(sampler("sequential")->order(7) == ascending());
}

TEST_CASE("shuffle is a permutation that depends on seed and epoch, and on nothing else") {
  const auto shuffled = sampler("shuffle");
  const auto first = shuffled->order(0);
  CHECK(first != ascending());
  CHECK(std::is_permutation(first.begin(), first.end(), ascending().begin()));
  CHECK(shuffled->order(1) != first);
  CHECK(shuffled->order(0) == first);
  CHECK(sampler("shuffle")->order(0) == first);
  CHECK(sampler("shuffle", 2)->order(0) != first);
}

TEST_CASE("a weighted sampler draws by weight, and never what weighs nothing") {
  const auto weighted = sampler("{class: weighted, weights: weight}");
  std::vector<int> count(10);
  for (int64_t epoch = 0; epoch < 4500; ++epoch) {
    for (const int64_t index : weighted->order(epoch)) ++count[static_cast<size_t>(index)];
  }
  // 45,000 draws, of which example i has i / 45: 1,000 i, standard deviation below 95.
  for (int i = 0; i < 10; ++i) CHECK(std::abs(count[static_cast<size_t>(i)] - 1000 * i) < 475);
  CHECK(count[0] == 0);
}

TEST_CASE("a balanced sampler gives each class the same share") {
  const auto balanced = sampler("{class: weighted, balance: class}");
  int rare = 0;
  for (int64_t epoch = 0; epoch < 1000; ++epoch) {
    const auto order = balanced->order(epoch);
    rare += static_cast<int>(std::count(order.begin(), order.end(), 0));
  }
  CHECK(std::abs(rare - 5000) < 250);  // five standard deviations of 10,000 draws at 1/2
}

TEST_CASE("a weighted sampler says what it lacks") {
  CHECK(message_of([] { sampler("weighted"); }) ==
        "test.yaml:1: sampler: the sampler weighted needs either \"balance\", a key of classes "
        "that shall come equally often, or \"weights\", a key of weights");
  CHECK(message_of([] { sampler("{class: weighted, weights: no}"); }) ==
        "test.yaml:1: sampler/weights: the dataset has no label \"no\" with one value per example "
        "that is known without loading the examples");
  CHECK(message_of([] { sampler("{class: weighted, weights: negative}"); }) ==
        "test.yaml:1: sampler/weights: the weight of an example is -5; weights are finite and 0 or "
        "more");
  CHECK(
      message_of([] { sampler("{class: weighted, weights: infinite}"); }) ==
      "test.yaml:1: sampler/weights: the weight of an example is inf; weights are finite and 0 or "
      "more");
  CHECK(message_of([] { sampler("{class: weighted, balance: unknown}"); }) ==
        "test.yaml:1: sampler/balance: the class of an example is nan; classes are numbers");
}

}  // namespace sampler_test
}  // namespace stepop
