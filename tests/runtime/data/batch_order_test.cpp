#include "runtime/data/batch_order.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <thread>

#include "runtime/config/yaml_reader.h"
#include "tests/message_of.h"

namespace stepop {
namespace batch_order_test {

class Sized : public Dataset {
 public:
  explicit Sized(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  Example get(int64_t, Random&) const override { return {}; }

 private:
  int64_t size_;
};

BatchOrder order_of(int64_t size, BatchOrderOptions options,
                    const std::string& sampler = "shuffle") {
  const Sized dataset(size);
  const Config config(parse_yaml("s: " + sampler, {"test.yaml", 0}));
  return {"datasets/train", samplers().build(config, "s", dataset, options.seed), options};
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

TEST_CASE("a dataset that gives no batch is an error") {
  CHECK(message_of([] { order_of(0, {.batch_size = 4}); }) ==
        "datasets/train: the dataset is empty");
  CHECK(
      message_of([] { order_of(3, {.batch_size = 4, .drop_last = true}); }) ==
      "datasets/train: drop_last leaves no batch: the dataset has 3 examples, a batch 4; choose a "
      "batch_size of 3 or less, or drop_last: false");
}

}  // namespace batch_order_test
}  // namespace stepop
