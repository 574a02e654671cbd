#include "runtime/data/loader.h"

#include <ATen/ops/full.h>
#include <ATen/ops/scalar_tensor.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/message_of.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace loader_test {

/// An example is its index and a random number; `bad` throws.
class Counting : public Dataset {
 public:
  explicit Counting(int64_t bad = -1) : bad_(bad) {}
  int64_t size() const override { return 50; }
  Example get(int64_t index, Random& random) const override {
    ++calls;
    if (std::this_thread::get_id() == owner_) ++own_calls;
    if (index == bad_) throw std::runtime_error("the file is torn");
    // Later examples are quicker, so that workers overtake each other.
    std::this_thread::sleep_for(std::chrono::microseconds(50 - index));
    return {.tensors = {{"x", at::scalar_tensor(static_cast<double>(index))},
                        {"noise", at::scalar_tensor(random.normal(), at::kDouble)}},
            .texts = {}};
  }

  mutable std::atomic<int> calls = 0;
  mutable std::atomic<int> own_calls = 0;  ///< In the thread that made the dataset.

 private:
  std::thread::id owner_ = std::this_thread::get_id();
  int64_t bad_;
};

/// Images.
struct Pictures : Dataset {
  int64_t size() const override { return 6; }
  Example get(int64_t index, Random& /*random*/) const override {
    return {.tensors = {{"image", at::full({2, 4, 4}, static_cast<double>(index))}}, .texts = {}};
  }
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

Seen load(const LoaderOptions& options, int64_t count) {
  const Counting dataset;
  const BatchOrder order = shuffled(dataset);
  Loader loader(dataset, order, options);
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
  CHECK(loader.position() == options.first_batch + count);
  return seen;
}

TEST_CASE("images have their channels last where it is asked for, whoever prepares them") {
  const Pictures pictures;
  const Config config;
  const BatchOrder order("datasets/train",
                         samplers().factory("sequential", config, "")(config, pictures, 1),
                         {.batch_size = 2, .seed = 1});
  for (const int64_t workers : {0, 2}) {
    for (const bool last : {false, true}) {
      Loader loader(pictures, order, {.workers = workers, .channels_last = last});
      for (int i = 0; i < 3; ++i) {
        const at::Tensor image = loader.next()["image"];
        CHECK(image.is_contiguous(at::MemoryFormat::ChannelsLast) == last);
        CHECK(image.is_contiguous() != last);
      }
    }
  }
}

TEST_CASE("the number of workers changes nothing, also over the ends of epochs") {
  const Seen expected = load({.workers = 0}, 20);
  CHECK(load({.workers = 1}, 20) == expected);
  CHECK(load({.workers = 4}, 20) == expected);
}

TEST_CASE("a loader that starts later gives what one from the beginning gives there") {
  const Seen whole = load({.workers = 2}, 14);
  const Seen late = load({.workers = 2, .first_batch = 9}, 5);
  CHECK(std::equal(late.noise.begin(), late.noise.end(),
                   whole.noise.end() - static_cast<std::ptrdiff_t>(late.noise.size())));
}

TEST_CASE("workers start only for batches that are slow, and the change-over loses none") {
  const Seen expected = load({.workers = 0}, 12);
  struct Row {
    double quick;           // what a batch of 8 sleeps is at least 8 * 1 us, at most some ms
    int at_most_own_calls;  // that the loop's own thread prepares, of 12 batches
    int at_least_own_calls;
  };
  for (const Row& row : {Row{1e9, 90, 90},     // none is slow
                         Row{1e-9, 8, 8},      // the first is very slow: workers from the second
                         Row{8e-6, 90, 8}}) {  // in between: wherever the change falls
    CAPTURE(row.quick);
    const Counting dataset;
    const BatchOrder order = shuffled(dataset);
    const LoaderOptions options{.workers = 2, .quick = row.quick};
    CHECK(load(options, 12) == expected);
    Loader loader(dataset, order, options);
    for (int i = 0; i < 12; ++i) loader.next();
    CHECK(dataset.own_calls <= row.at_most_own_calls);
    CHECK(dataset.own_calls >= row.at_least_own_calls);
  }
}

TEST_CASE("batches that are slow, but a small part of a step, start no worker") {
  const Counting dataset;
  const BatchOrder order = shuffled(dataset);
  constexpr double kSlow = 1e-4;  // a batch takes some 0.8 ms, as the shortest sleep is no shorter
  const auto own_calls = [&](std::chrono::milliseconds step) {
    dataset.own_calls = 0;
    Loader loader(dataset, order, {.workers = 2, .quick = kSlow});
    for (int i = 0; i < 12; ++i) {
      loader.next();
      std::this_thread::sleep_for(step);
    }
    return dataset.own_calls.load();
  };
  CHECK(own_calls(std::chrono::milliseconds(0)) < 90);
  CHECK(own_calls(std::chrono::milliseconds(100)) == 90);
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

/// Throws what is no std::exception, as C++ allows; example by example, or for a batch at once.
class Throwing : public Dataset {
 public:
  Throwing(int64_t kind, bool gathers) : kind_(kind), gathers_(gathers) {}
  int64_t size() const override { return 50; }
  Example get(int64_t index, Random& /*random*/) const override {
    if (index == 3) fail();
    return {.tensors = {{"x", at::scalar_tensor(0.0)}}, .texts = {}};
  }
  std::optional<Batch> get_batch(std::span<const int64_t> /*indices*/,
                                 std::span<Random> /*randoms*/) const override {
    if (gathers_) fail();
    return std::nullopt;
  }

 private:
  void fail() const {
    if (kind_ == 0) throw "the text";
    if (kind_ == 1) throw std::string("the string");
    if (kind_ == 2) throw 42;
    throw 1.5;
  }

  int64_t kind_;
  bool gathers_;
};

TEST_CASE("whatever a dataset throws becomes an error with split and index") {
  const std::vector<std::string> expected = {"the text", "the string", "threw the number 42",
                                             "threw a double, which is not a std::exception"};
  for (size_t kind = 0; kind < expected.size(); ++kind) {
    for (const int64_t workers : {0, 2}) {
      for (const bool gathers : {false, true}) {
        const Throwing dataset(static_cast<int64_t>(kind), gathers);
        const Config config;
        const BatchOrder order("datasets/train",
                               samplers().factory("sequential", config, "")(config, dataset, 1),
                               {.batch_size = 4, .seed = 1});
        Loader loader(dataset, order, {.workers = workers});
        CHECK(message_of([&] { loader.next(); }) ==
              (gathers ? "datasets/train: examples 0, 1, 2, 3: " : "datasets/train: example 3: ") +
                  expected[kind]);
      }
    }
  }
}

TEST_CASE("a sampler that fails is named by its split") {
  class Failing : public Sampler {
   public:
    std::vector<int64_t> order(int64_t epoch) const override {
      if (epoch > 0) throw std::runtime_error("no order");
      return {1};
    }
  };
  const Counting dataset;
  const BatchOrder order("datasets/train", std::make_unique<Failing>(), {.batch_size = 1});
  for (const int64_t workers : {0, 1}) {
    Loader loader(dataset, order, {.workers = workers});
    loader.next();
    CHECK(message_of([&] { loader.next(); }) == "datasets/train: no order");
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

}  // namespace loader_test
}  // namespace stepop
