#include "runtime/data/loader.h"

#include <ATen/ops/scalar_tensor.h>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/message_of.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace {

/// An example is its index and a random number; `bad` throws.
class Counting : public Dataset {
 public:
  explicit Counting(int64_t bad = -1) : bad_(bad) {}
  int64_t size() const override { return 50; }
  Example get(int64_t index, Random& random) const override {
    ++calls;
    if (index == bad_) throw std::runtime_error("the file is torn");
    // Later examples are quicker, so that workers overtake each other.
    std::this_thread::sleep_for(std::chrono::microseconds(50 - index));
    return {.tensors = {{"x", at::scalar_tensor(static_cast<double>(index))},
                        {"noise", at::scalar_tensor(random.normal(), at::kDouble)}},
            .texts = {}};
  }

  mutable std::atomic<int> calls = 0;

 private:
  int64_t bad_;
};

BatchOrder shuffled(const Dataset& dataset) {
  const Config config;
  return {"datasets/train",
          samplers().factory("shuffle", config, "")(config, dataset, 5),
          {.batch_size = 8, .seed = 5}};
}

struct Seen {
  std::vector<float> x;
  std::vector<double> noise;
  bool operator==(const Seen&) const = default;
};

Seen load(int64_t workers, int64_t first, int64_t count) {
  const Counting dataset;
  const BatchOrder order = shuffled(dataset);
  Loader loader(dataset, order, {.workers = workers, .prefetch = 2, .first_batch = first});
  Seen seen;
  for (int64_t i = 0; i < count; ++i) {
    const Batch batch = loader.next();
    const auto x = values_of<float>(batch["x"]);
    const auto noise = values_of<double>(batch["noise"]);
    seen.x.insert(seen.x.end(), x.begin(), x.end());
    seen.noise.insert(seen.noise.end(), noise.begin(), noise.end());
    const auto index = values_of<int64_t>(batch["index"]);
    CHECK(std::equal(x.begin(), x.end(), index.begin()));
  }
  CHECK(loader.position() == first + count);
  return seen;
}

TEST_CASE("the number of workers changes nothing, also over the ends of epochs") {
  const Seen expected = load(0, 0, 20);
  CHECK(load(1, 0, 20) == expected);
  CHECK(load(4, 0, 20) == expected);
}

TEST_CASE("a loader that starts later gives what one from the beginning gives there") {
  const Seen whole = load(2, 0, 14);
  const Seen late = load(2, 9, 5);
  CHECK(std::equal(late.noise.begin(), late.noise.end(),
                   whole.noise.end() - static_cast<std::ptrdiff_t>(late.noise.size())));
}

TEST_CASE("a dataset's exception arrives in order with split and index") {
  for (const int64_t workers : {0, 1, 3}) {
    const Counting dataset(17);
    const BatchOrder order = shuffled(dataset);
    Loader loader(dataset, order, {.workers = workers});
    int64_t batch_of_17 = 0;
    for (int64_t batch = 0; batch < order.batches_per_epoch(); ++batch) {
      for (const int64_t index : order.indices(batch)) {
        if (index == 17) batch_of_17 = batch;
      }
    }
    for (int64_t batch = 0; batch < batch_of_17; ++batch) loader.next();
    CHECK(message_of([&] { loader.next(); }) == "datasets/train: example 17: the file is torn");
  }
}

TEST_CASE("workers run no further ahead than they may") {
  const Counting dataset;
  const BatchOrder order = shuffled(dataset);
  Loader loader(dataset, order, {.workers = 2, .prefetch = 2});
  loader.next();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  // One batch was taken; two workers are at most two batches of eight ahead each.
  CHECK(dataset.calls <= 8 + 4 * 8);
}

TEST_CASE("an end is kept, and a loader may be destroyed while its workers are busy") {
  const Counting dataset;
  const BatchOrder order = shuffled(dataset);
  Loader bounded(dataset, order, {.workers = 2, .end_batch = 2});
  CHECK(bounded.has_next());
  bounded.next();
  bounded.next();
  CHECK_FALSE(bounded.has_next());
  for (int i = 0; i < 20; ++i) Loader(dataset, order, {.workers = 3});
}

}  // namespace
}  // namespace stepop
