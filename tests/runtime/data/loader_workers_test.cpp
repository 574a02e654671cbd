#include "runtime/data/loader.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <numeric>
#include <optional>
#include <span>
#include <thread>

#include "tests/message_of.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace loader_workers_test {

using Indices = std::vector<int64_t>;
using std::chrono::milliseconds;

class Ascending : public Sampler {
 public:
  explicit Ascending(int64_t size) : size_(size) {}
  Indices order(int64_t epoch) const override {
    Indices indices(static_cast<size_t>(size_));
    std::iota(indices.begin(), indices.end(), 0);
    if (epoch % 2 == 1) std::reverse(indices.begin(), indices.end());
    return indices;
  }

 private:
  int64_t size_;
};

/// Example i is [i, a random number]; `before` is called first, in the worker's thread.
class Numbers : public Dataset {
 public:
  explicit Numbers(
      int64_t size, std::function<void(int64_t)> before = [](int64_t) {})
      : size_(size), before_(std::move(before)) {}
  int64_t size() const override { return size_; }
  Example get(int64_t index, Random& random) const override {
    before_(index);
    at::Tensor x = at::full({2}, static_cast<double>(index), at::kDouble);
    x.mutable_data_ptr<double>()[1] = random.uniform();
    return {.tensors = {{"x", x}}, .texts = {{"name", fmt::format("example {}", index)}}};
  }

 private:
  int64_t size_;
  std::function<void(int64_t)> before_;
};

BatchOrder order_of(const Dataset& dataset, int64_t batch_size) {
  return {"datasets/train",
          std::make_unique<Ascending>(dataset.size()),
          {.batch_size = batch_size, .drop_last = false, .max_batches = 0, .seed = 4}};
}

TEST_CASE("prefetch is bounded: each worker is at most so many batches ahead") {
  std::atomic<int> loaded = 0;
  const Numbers data(1000, [&](int64_t) { ++loaded; });
  const BatchOrder order = order_of(data, 1);
  Loader loader(data, order, {.workers = 2, .prefetch = 3});
  const auto settles_at = [&](int expected) {
    for (int i = 0; i < 60'000 && loaded < expected; ++i)
      std::this_thread::sleep_for(milliseconds(1));
    std::this_thread::sleep_for(milliseconds(20));  // the time to go too far
    return loaded == expected;
  };
  CHECK(settles_at(6));
  loader.next();
  CHECK(settles_at(7));
  for (int i = 0; i < 4; ++i) loader.next();
  CHECK(settles_at(11));
}

TEST_CASE("nothing beyond the last batch is loaded") {
  std::atomic<int> loaded = 0;
  const Numbers data(10, [&](int64_t) { ++loaded; });
  const BatchOrder order = order_of(data, 5);
  {
    Loader loader(data, order, {.workers = 4, .prefetch = 4, .end_batch = 2});
    while (loader.has_next()) loader.next();
    std::this_thread::sleep_for(milliseconds(10));
  }
  CHECK(loaded == 10);
}

TEST_CASE("a loader can go while its workers are busy, blocked or failing") {
  for (int round = 0; round < 50; ++round) {
    const Numbers data(100, [&](int64_t index) {
      if (index == 7) throw std::runtime_error("bad");
      if (index % 3 == 0) std::this_thread::sleep_for(milliseconds(1));
    });
    const BatchOrder order = order_of(data, 2);
    Loader loader(data, order, {.workers = 3, .prefetch = 2});
    if (round % 2 == 0) loader.next();
  }
}

TEST_CASE("a loader that owns its data goes without a worker that is stuck, which keeps them") {
  struct Owned {
    explicit Owned(std::latch& gate)
        : data(100, [this, &gate](int64_t) {
            ++inside;
            gate.wait();
          }) {}
    std::atomic<int> inside = 0;
    Numbers data;
    BatchOrder order = order_of(data, 1);
  };
  // As long as nobody knows how long a batch takes, one worker prepares the first one.
  for (const double quick : {0.0, 1.0}) {
    CAPTURE(quick);
    std::latch gate(1);
    auto owned = std::make_shared<Owned>(gate);
    const std::weak_ptr<Owned> watch = owned;
    {
      const int stuck = quick > 0 ? 1 : 2;
      const auto interrupt = [data = owned.get(), stuck] {
        if (data->inside == stuck) throw Interrupted("enough");
      };
      Loader loader(owned->data, owned->order,
                    {.workers = 2, .quick = quick, .interrupt = interrupt, .owner = owned});
      owned.reset();
      CHECK(message_of([&] { loader.next(); }) == "enough");
    }
    CHECK(Loader::workers_left_behind() == (quick > 0 ? 1 : 2));
    CHECK_FALSE(watch.expired());
    gate.count_down();
    while (!watch.expired()) std::this_thread::sleep_for(milliseconds(1));
    CHECK(Loader::workers_left_behind() == 0);
  }
}

/// Each example takes 40 ms, and example 5 waits for the gate.
class SlowOrStuck : public Numbers {
 public:
  SlowOrStuck(std::latch& gate, bool gathers)
      : Numbers(100,
                [&gate](int64_t index) {
                  std::this_thread::sleep_for(milliseconds(40));
                  if (index == 5) gate.wait();
                }),
        gathers_(gathers) {}
  std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                 std::span<Random> randoms) const override {
    if (!gathers_) return std::nullopt;
    std::vector<Example> examples;
    for (size_t i = 0; i < indices.size(); ++i) examples.push_back(get(indices[i], randoms[i]));
    return collate(examples, {indices.begin(), indices.end()});
  }

 private:
  bool gathers_;
};

TEST_CASE("an example that hangs ends the wait by its name, one that takes long does not") {
  for (const int64_t workers : {0, 2}) {
    for (const bool gathers : {false, true}) {
      CAPTURE(workers);
      CAPTURE(gathers);
      std::latch gate(1);
      auto data = std::make_shared<SlowOrStuck>(gate, gathers);
      const std::weak_ptr<SlowOrStuck> watch = data;
      const BatchOrder order = order_of(*data, 2);
      {
        // Two batches are 160 ms; the 2 s are those of an example, or of a get_batch.
        Loader loader(*data, order, {.workers = workers, .quick = 1, .timeout = 2, .owner = data});
        data.reset();
        CHECK(loader.next().indices() == Indices{0, 1});
        CHECK(loader.next().indices() == Indices{2, 3});
        CHECK(message_of([&] { loader.next(); }) ==
              fmt::format("datasets/train: {}: nothing came for 2 s (data_timeout): look at where "
                          "this is read from; a larger data_timeout waits longer",
                          gathers ? "examples 4, 5" : "example 5"));
      }
      CHECK(Loader::workers_left_behind() == 1);
      gate.count_down();
      while (!watch.expired()) std::this_thread::sleep_for(milliseconds(1));
      CHECK(Loader::workers_left_behind() == 0);
    }
  }
}

TEST_CASE("a wait that was broken off can be taken up again") {
  for (const double quick : {0.0, 1.0}) {
    std::latch gate(1);
    const auto data = std::make_shared<Numbers>(100, [&](int64_t) { gate.wait(); });
    const BatchOrder order = order_of(*data, 2);
    int asked = 0;
    const auto interrupt = [&] {
      ++asked;
      if (asked == 1) throw Interrupted("enough");
      if (asked == 2) gate.count_down();
    };
    Loader loader(*data, order,
                  {.workers = 2, .quick = quick, .interrupt = interrupt, .owner = data});
    CHECK(message_of([&] { loader.next(); }) == "enough");
    for (int64_t i = 0; i < 10; ++i) {
      CHECK(loader.next().indices() == Indices{2 * i, 2 * i + 1});
    }
  }
}

TEST_CASE("workers that end in time are not left behind") {
  auto data =
      std::make_shared<Numbers>(100, [](int64_t) { std::this_thread::sleep_for(milliseconds(1)); });
  const BatchOrder order = order_of(*data, 1);
  { Loader(*data, order, {.workers = 3, .owner = data}).next(); }
  CHECK(Loader::workers_left_behind() == 0);
  CHECK(data.use_count() == 1);
}

TEST_CASE("several workers load at the same time") {
  std::latch all_there(3);
  const Numbers data(30, [&](int64_t index) {
    // Ends only when three are inside at once; a loader that loads one by one would hang here.
    if (index < 3) all_there.arrive_and_wait();
  });
  const BatchOrder order = order_of(data, 1);
  Loader loader(data, order, {.workers = 3, .end_batch = 3});
  for (int64_t i = 0; i < 3; ++i) CHECK(loader.next().indices() == Indices{i});
}

TEST_CASE("examples are loaded without gradients, in workers and without them") {
  for (const int64_t workers : {0, 1}) {
    std::atomic<bool> has_gradients = false;
    const Numbers data(4, [&](int64_t) {
      if (at::GradMode::is_enabled()) has_gradients = true;
    });
    const BatchOrder order = order_of(data, 2);
    Loader loader(data, order, {.workers = workers, .end_batch = 2});
    while (loader.has_next()) loader.next();
    CHECK_FALSE(has_gradients);
  }
}

}  // namespace loader_workers_test
}  // namespace stepop
