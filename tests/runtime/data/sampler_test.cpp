#include "runtime/data/sampler.h"
#include "runtime/data/batch_source.h"

#include <ATen/ops/arange.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "runtime/core/value/yaml_reader.h"
#include "tests/index_range.h"
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
  const std::vector<int64_t> indices = index_range(0, 10);
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

TEST_CASE("the stored shuffle and the weighted order never change, so that runs resume") {
  // Computed by an implementation of SplitMix64, Lemire's bounded numbers and Fisher-Yates in
  // Python.
  using Indices = std::vector<int64_t>;
  CHECK(sampler("shuffle")->order(0) == Indices{5, 1, 3, 2, 4, 8, 6, 9, 7, 0});
  CHECK(sampler("shuffle")->order(7) == Indices{5, 9, 0, 2, 1, 3, 4, 7, 6, 8});
  const auto weighted = sampler("{class: weighted, weights: weight}");
  CHECK(weighted->order(0) == Indices{2, 9, 2, 9, 4, 9, 8, 9, 8, 6});
  CHECK(weighted->order(3) == Indices{9, 6, 3, 8, 9, 6, 5, 8, 3, 5});
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
        "that should come equally often, or \"weights\", a key of weights");
  CHECK(message_of([] { sampler("{class: weighted, weights: no}"); }) ==
        "test.yaml:1: sampler/weights: the dataset has no label \"no\" with one value per example "
        "that is known without loading the examples; a dataset of your own returns them from "
        "`labels`");
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

class Sized : public Dataset {
 public:
  explicit Sized(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  Example get(int64_t, Random&) const override { return {}; }

 private:
  int64_t size_;
};

std::unique_ptr<Sampler> sampler_of(int64_t size, const std::string& yaml, uint64_t seed = 1) {
  const Sized dataset(size);
  const Config config(parse_yaml("s: " + yaml, {"test.yaml", 0}));
  return samplers().build(config, "s", dataset, seed);
}

BatchOrder order_of(int64_t size, BatchOrderOptions options,
                    const std::string& sampler = "shuffle") {
  return {"datasets/train", sampler_of(size, sampler, options.seed), options};
}

TEST_CASE("the batches of an epoch hold every example once; the last is smaller") {
  const BatchOrder order = order_of(10, {.batch_size = 4});
  REQUIRE(order.batches_per_epoch() == 3);
  std::multiset<int64_t> seen;
  std::vector<size_t> sizes;
  for (int64_t batch = 0; batch < 3; ++batch) {
    const auto indices = order.indices(batch);
    sizes.push_back(indices.size());
    seen.insert(indices.begin(), indices.end());
  }
  CHECK(sizes == std::vector<size_t>{4, 4, 2});
  CHECK(seen == std::multiset<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(order.examples_in(2) == 8);
  CHECK(order.examples_in(3) == 10);
}

TEST_CASE("batches count on over the epochs' ends, in whatever order they are asked for") {
  const BatchOrder order = order_of(10, {.batch_size = 4, .seed = 3});
  const auto late = order.indices(3 * 5 + 1);
  for (int64_t batch = 0; batch < 20; ++batch) order.indices(batch);
  CHECK(order.indices(3 * 5 + 1) == late);
  CHECK(order_of(10, {.batch_size = 4, .seed = 3}).indices(16) == late);
  CHECK(order.indices(1) != late);
}

TEST_CASE("threads that ask for both sides of an epoch's end get the same as one thread") {
  const BatchOrder order = order_of(64, {.batch_size = 1, .seed = 3});
  std::vector<int64_t> expected;
  for (int64_t batch = 0; batch < 640; ++batch) expected.push_back(order.indices(batch)[0]);
  std::vector<int64_t> found(640);
  std::vector<std::thread> threads;
  for (int64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int64_t batch = thread; batch < 640; batch += 4) {
        found[static_cast<size_t>(batch)] = order.indices(batch)[0];
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(found == expected);
}

TEST_CASE("drop_last leaves out the smaller batch, max_batches cuts the epoch") {
  CHECK(order_of(10, {.batch_size = 4, .drop_last = true}).batches_per_epoch() == 2);
  CHECK(order_of(8, {.batch_size = 4, .drop_last = true}).batches_per_epoch() == 2);
  CHECK(order_of(10, {.batch_size = 4, .max_batches = 2}).batches_per_epoch() == 2);
  CHECK(order_of(10, {.batch_size = 4, .max_batches = 9}).batches_per_epoch() == 3);
}

TEST_CASE("an example's generator depends on seed, epoch and position, not on the batch size") {
  const auto first_number = [](int64_t batch_size, uint64_t seed, int64_t epoch, int64_t position) {
    const BatchOrder order = order_of(8, {.batch_size = batch_size, .seed = seed});
    auto randoms = order.randoms(epoch * order.batches_per_epoch() + position / batch_size);
    return randoms[static_cast<size_t>(position % batch_size)]();
  };
  CHECK(first_number(4, 1, 2, 5) == first_number(2, 1, 2, 5));
  CHECK(first_number(4, 1, 2, 5) != first_number(4, 1, 2, 6));
  CHECK(first_number(4, 1, 2, 5) != first_number(4, 1, 3, 5));
  CHECK(first_number(4, 1, 2, 5) != first_number(4, 2, 2, 5));
}

TEST_CASE("10^12 examples are shuffled, and no order of them is stored") {
  constexpr int64_t kSize = 1'000'000'000'000;
  for (const std::string sampler : {"shuffle", "sequential"}) {
    CAPTURE(sampler);
    const BatchOrder order = order_of(kSize, {.batch_size = 1000, .seed = 1}, sampler);
    REQUIRE(order.batches_per_epoch() == kSize / 1000);
    std::set<int64_t> seen;
    double sum = 0;
    for (const int64_t batch : {int64_t{0}, int64_t{1}, kSize / 1000 - 1, kSize / 1000 * 5}) {
      for (const int64_t index : order.indices(batch)) {
        CHECK(index >= 0);
        CHECK(index < kSize);
        seen.insert(index);
        sum += static_cast<double>(index);
      }
    }
    if (sampler == "sequential") {
      CHECK(seen.size() == 3000);  // batch 0 again in the sixth epoch
    } else {
      CHECK(seen.size() == 4000);
      // The mean of 4,000 uniform numbers is within 5 standard deviations of the middle.
      CHECK(std::abs(sum / 4000 / static_cast<double>(kSize) - 0.5) < 5 * 0.2887 / std::sqrt(4000));
    }
    CHECK(order.examples_in(2) == 2000);
    CHECK(order.examples_in(order.batches_per_epoch()) == kSize);
  }
}

TEST_CASE("a million draws from 10^12 examples have no repeats") {
  constexpr int64_t kSize = 1'000'000'000'000;
  constexpr int64_t kBatch = 10'000;
  const BatchOrder order = order_of(kSize, {.batch_size = kBatch, .seed = 5}, "shuffle");
  std::vector<int64_t> drawn;
  for (int64_t batch = 0; batch < 100; ++batch) {
    const auto indices = order.indices(batch);
    drawn.insert(drawn.end(), indices.begin(), indices.end());
  }
  std::ranges::sort(drawn);
  CHECK(drawn.size() == 1'000'000);
  CHECK(std::ranges::adjacent_find(drawn) == drawn.end());
}

TEST_CASE("a computed shuffle is a permutation of any size, which differs from epoch to epoch") {
  for (int64_t size = 1; size < 300; ++size) {
    const BatchOrder order =
        order_of(size, {.batch_size = size, .seed = 3}, "{class: shuffle, order: computed}");
    std::vector<int64_t> all = order.indices(2);
    const bool differs = all != order.indices(3);
    CHECK((differs || size < 6));
    std::sort(all.begin(), all.end());
    const std::vector<int64_t> expected = index_range(0, size);
    CHECK((all == expected));
  }
}

TEST_CASE("a computed shuffle puts each example at each position equally often") {
  constexpr int64_t kSize = 20;
  constexpr int kEpochs = 4000;
  const auto computed = sampler_of(kSize, "{class: shuffle, order: computed}");
  std::vector<int> at_position(kSize * kSize);
  std::vector<int> steps(kSize);  // from an index to the next one
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const auto order = computed->order(epoch);
    for (int64_t p = 0; p < kSize; ++p) {
      const int64_t index = order[static_cast<size_t>(p)];
      ++at_position[static_cast<size_t>(p * kSize + index)];
      const int64_t next = order[static_cast<size_t>((p + 1) % kSize)];
      ++steps[static_cast<size_t>((next - index + kSize) % kSize)];
    }
  }
  // 4,000 trials of probability 1/20: 200, standard deviation 13.8; of 400 the largest deviation
  // is below six of them.
  for (const int count : at_position) CHECK(std::abs(count - kEpochs / kSize) < 83);
  // 80,000 steps among 19: 4,211 each, standard deviation at most some 65.
  CHECK(steps[0] == 0);
  for (size_t step = 1; step < steps.size(); ++step) CHECK(std::abs(steps[step] - 4211) < 400);
}

TEST_CASE("the computed shuffle never changes, so that runs resume") {
  using Indices = std::vector<int64_t>;
  // Computed by an implementation in Python.
  const auto small = sampler_of(10, "{class: shuffle, order: computed}");
  CHECK(small->order(0) == Indices{8, 4, 7, 3, 2, 9, 6, 5, 1, 0});
  CHECK(small->order(7) == Indices{5, 3, 8, 4, 1, 2, 9, 0, 6, 7});
  const BatchOrder large = order_of(1'000'000'000'000, {.batch_size = 3, .seed = 1});
  CHECK(large.indices(0) == Indices{697250912657, 929593713111, 220827603195});
}

TEST_CASE("any part of a computed order is what the whole order has there") {
  for (const std::string yaml :
       {"sequential", "{class: shuffle, order: computed}", "{class: weighted, weights: weight}"}) {
    CAPTURE(yaml);
    const auto whole = sampler(yaml);
    const auto* computed = dynamic_cast<const ComputedSampler*>(whole.get());
    REQUIRE(computed != nullptr);
    const auto order = whole->order(4);
    for (int64_t first = 0; first < 10; ++first) {
      const std::vector<int64_t> rest(order.begin() + first, order.end());
      CHECK(computed->indices(4, first, 10 - first) == rest);
      CHECK(computed->indices(4, first, 1)[0] == rest[0]);
    }
  }
}

TEST_CASE("a shuffle is stored for sizes that runs of before had, and says what it is") {
  CHECK(order_of(1 << 20, {}).algorithm() == "");
  CHECK(order_of((1 << 24) + 1, {}).algorithm() == "computed");
  CHECK(order_of(10, {}, "{class: shuffle, order: computed}").algorithm() == "computed");
  CHECK(order_of((1 << 24) + 1, {.batch_size = 8}, "sequential").algorithm() == "");
  CHECK(message_of([] { order_of(10, {}, "{class: shuffle, order: some}"); }) ==
        "test.yaml:1: s/order: expected stored or computed, found \"some\"");
}

TEST_CASE("a batch larger than the dataset holds all of it, with a warning") {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  for (const int64_t batch_size : {int64_t{11}, kHuge}) {
    const BatchOrder order = order_of(10, {.batch_size = batch_size});
    CHECK(order.batches_per_epoch() == 1);
    CHECK(order.indices(3).size() == 10);
    CHECK(order.randoms(3).size() == 10);
    CHECK(order.examples_in(1) == 10);
  }
  CHECK(order_of(10, {.batch_size = 10}).warning() == "");
  CHECK(order_of(10, {.batch_size = 1200}).warning() ==
        "batch_size is 1,200, but datasets/train has only 10 examples: each batch holds all of "
        "them");
}

TEST_CASE("a dataset that gives no batch is an error") {
  CHECK(message_of([] { order_of(0, {.batch_size = 4}); }) ==
        "datasets/train: the dataset is empty");
  CHECK(
      message_of([] { order_of(3, {.batch_size = 4, .drop_last = true}); }) ==
      "datasets/train: drop_last leaves no batch: the dataset has 3 examples, a batch 4; choose a "
      "batch_size of 3 or less, or drop_last: false");
}

}  // namespace sampler_test
}  // namespace stepop
