#include <ATen/ops/arange.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "runtime/core/value/yaml_reader.h"
#include "runtime/data/batch_source.h"
#include "runtime/data/sampler.h"
#include "tests/dataset_of.h"
#include "tests/message_of.h"

namespace stepop {
namespace length_batches_test {

using Indices = std::vector<int64_t>;

/// Example i is the numbers i, i + 1 ...; there are as many as its length says.
class Ragged : public Dataset {
 public:
  explicit Ragged(Indices lengths) : lengths_(std::move(lengths)) {}
  int64_t size() const override { return static_cast<int64_t>(lengths_.size()); }
  Example get(int64_t index, Random&) const override {
    return {.tensors = {{"tokens", at::arange(index, index + lengths_[static_cast<size_t>(index)],
                                              at::kLong)},
                        {"class", at::scalar_tensor(index, at::kLong)}},
            .texts = {}};
  }
  at::Tensor labels(std::string_view key) const override {
    return key == "length" ? at::tensor(lengths_) : at::Tensor();
  }
  std::vector<std::string> label_keys() const override { return {"length"}; }

 private:
  Indices lengths_;
};

STEPOP_REGISTER(datasets(), "RaggedOfTest",
                [](const Config& params) {
                  return std::make_unique<Ragged>(params.get<Indices>("lengths"));
                },
                {"", {{"lengths", "", ""}}});

Indices many_lengths(int64_t count) {
  Random random(5);
  Indices lengths;
  for (int64_t i = 0; i < count; ++i) {
    lengths.push_back(1 + random.below(random.below(10) == 0 ? 400 : 60));
  }
  return lengths;
}

BatchOrder order_of(const Dataset& dataset, const std::string& sampler, BatchOrderOptions options) {
  const Config config(parse_yaml("sampler: " + sampler, {"test.yaml", 0}));
  return {"datasets/train", samplers().build(config, "sampler", dataset, options.seed), options};
}

TEST_CASE("batches of lengths hold every example once, of nearly equal length") {
  const Indices lengths = many_lengths(1000);
  const Ragged data(lengths);
  const BatchOrder order = order_of(data, "lengths", {.batch_size = 16, .seed = 3});
  CHECK(order.batches_per_epoch() == 63);
  std::set<Indices> first_batches;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    Indices all;
    int64_t padded = 0;
    int64_t examples = 0;
    for (int64_t batch = 0; batch < 63; ++batch) {
      const Indices indices = order.indices(epoch * 63 + batch);
      CHECK(indices.size() == (batch == 62 ? 8 : 16));
      CHECK(order.randoms(epoch * 63 + batch).size() == indices.size());
      CHECK(order.examples_in(batch, epoch) == examples);
      examples += static_cast<int64_t>(indices.size());
      int64_t longest = 0;
      for (const int64_t index : indices) {
        longest = std::max(longest, lengths[static_cast<size_t>(index)]);
        all.push_back(index);
      }
      padded += longest * static_cast<int64_t>(indices.size());
      if (batch == 0) first_batches.insert(indices);
    }
    std::sort(all.begin(), all.end());
    CHECK(all.size() == 1000);
    CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
    const auto tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
    CHECK(static_cast<double>(padded) < 1.2 * static_cast<double>(tokens));  // shuffled: 4 times
  }
  CHECK(first_batches.size() == 3);
}

TEST_CASE("a batch has no more tokens than it may, and an epoch always as many batches") {
  const Indices lengths = many_lengths(2000);
  const Ragged data(lengths);
  const std::string sampler = "{class: lengths, tokens: 1024}";
  for (const bool drop_last : {false, true}) {
    const BatchOrderOptions options{.batch_size = 64, .drop_last = drop_last, .seed = 3};
    const BatchOrder order = order_of(data, sampler, options);
    const int64_t batches = order.batches_per_epoch();
    std::set<size_t> sizes;
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      std::set<int64_t> all;
      for (int64_t batch = 0; batch < batches; ++batch) {
        const Indices indices = order.indices(epoch * batches + batch);
        sizes.insert(indices.size());
        int64_t longest = 0;
        for (const int64_t i : indices)
          longest = std::max(longest, lengths[static_cast<size_t>(i)]);
        CHECK(longest * static_cast<int64_t>(indices.size()) <= 1024);
        CHECK(indices.size() <= 64);
        all.insert(indices.begin(), indices.end());
      }
      CHECK(all.size() == static_cast<size_t>(order.examples_in(batches, epoch)));
      CHECK((drop_last ? all.size() > 1900 : all.size() == 2000));
    }
    CHECK(sizes.size() > 10);

    // A run that resumes asks for a batch in the middle of a later epoch first.
    const BatchOrder resumed = order_of(data, sampler, options);
    CHECK(resumed.indices(2 * batches + 7) == order.indices(2 * batches + 7));
    Random a = resumed.randoms(2 * batches + 7).back();
    Random b = order.randoms(2 * batches + 7).back();
    CHECK(a() == b());
  }
}

TEST_CASE("what a sampler of lengths cannot do is said") {
  const Ragged data({3, 9, 2000});
  const auto message = [&](const std::string& sampler) {
    return message_of([&] { order_of(data, sampler, {.batch_size = 2}); });
  };
  CHECK(message("{class: lengths, key: size}") ==
        "test.yaml:1: sampler/key: the dataset has no label \"size\" with one number for each "
        "example; its labels are: length");
  CHECK(message("{class: lengths, tokens: 1024}") ==
        "test.yaml:1: sampler/tokens: a batch of 1,024 has no room for example 2, which has 2,000: "
        "cut it (\"length\" of Text) or leave it out (the dataset Subset)");
  CHECK(message_of([&] {
          order_of(data, "lengths", {.batch_size = 4, .drop_last = true});
        }).starts_with("datasets/train: drop_last leaves no batch"));
}

TEST_CASE("examples are padded to the longest of their batch") {
  const auto data = dataset_of(
      "{class: Padded, pad: {tokens: -1}, mask: true, dataset: {class: RaggedOfTest, lengths: "
      "[2, 0, 3]}}");
  CHECK(data->labels("length").size(0) == 3);
  const Batch batch = batch_of(*data, {2, 0, 1});
  CHECK(batch["tokens"].equal(at::tensor({2, 3, 4, 0, 1, -1, -1, -1, -1}, at::kLong).view({3, 3})));
  CHECK(batch["tokens_length"].equal(at::tensor({3, 2, 0}, at::kLong)));
  CHECK(batch["tokens_mask"].sum(1).equal(batch["tokens_length"]));
  CHECK(batch["class"].equal(at::tensor({2, 0, 1}, at::kLong)));
  const auto by_eight = dataset_of(
      "{class: Padded, pad: {tokens: 0}, multiple_of: 8, dataset: {class: RaggedOfTest, lengths: "
      "[2, 9]}}");
  CHECK(batch_of(*by_eight, {0})["tokens"].size(1) == 8);
  CHECK(batch_of(*by_eight, {0, 1})["tokens"].size(1) == 16);
}

TEST_CASE("what cannot be padded is said") {
  const auto message = [](const std::string& pad) {
    return message_of([&] {
      const auto data = dataset_of("{class: Padded, pad: " + pad +
                                   ", dataset: {class: RaggedOfTest, lengths: [2, 3]}}");
      batch_of(*data, {0, 1});
    });
  };
  CHECK(message("{token: 0}") ==
        "example 0: has no tensor \"token\" to pad; there are: tokens, class");
  CHECK(message("{tokens: 0.5}") == "\"tokens\" is int64 [2] and cannot be padded with 0.5");
  CHECK(message("{tokens: 0, class: 0}").find("cannot be padded to one size: \"class\"") !=
        std::string::npos);
  CHECK(message("{}") ==
        "test.yaml:1: data/pad: expected a map from keys to the values they are padded with, such "
        "as {tokens: 0}");
}

}  // namespace length_batches_test
}  // namespace stepop
