#include "runtime/train/iterator/splits.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "runtime/core/value/yaml_reader.h"

namespace stepop {
namespace splits_test {

TEST_CASE("per_process makes a training batch larger with each process, an evaluation's not") {
  const Config config(
      parse_yaml("datasets: {train: {class: Synthetic, shape: [1, 2, 2], size: 100}}\n"
                 "batch_size: {per_process: 8}\n",
                 {"test.yaml", 0}));
  for (const int processes : {1, 3}) {
    CAPTURE(processes);
    Splits splits(config, /*seed=*/1, c10::kCPU, /*local_processes=*/1, processes);
    CHECK(splits.order("train").indices(0).size() == static_cast<size_t>(8 * processes));
    CHECK(splits.evaluation_order("train", 0).indices(0).size() == 8);
    CHECK(splits.fixed_examples("train").size() == 8);
  }
}

/// A validation split of so many examples.
Splits splits_of(int64_t size, const std::string& more = "") {
  return {Config(parse_yaml(fmt::format("datasets: {{validation: {{class: Synthetic, shape: [1, 2, "
                                        "2], size: {}}}}}\nbatch_size: 10\n{}",
                                        size, more),
                            {"test.yaml", 0})),
          /*seed=*/1, c10::kCPU};
}

TEST_CASE("logs of a split show a fair sample of it, another one each epoch, and no short batch") {
  Splits splits = splits_of(107);
  const BatchOrder& order = splits.order("validation");
  CHECK(order.batches_per_epoch() == 10);
  std::set<int64_t> seen;
  int64_t below_half = 0;
  for (int64_t batch = 0; batch < 10; ++batch) {
    const auto indices = order.indices(batch);
    CHECK(indices.size() == 10);
    seen.insert(indices.begin(), indices.end());
    if (batch == 0) below_half = std::ranges::count_if(indices, [](auto i) { return i < 53; });
  }
  CHECK(seen.size() == 100);
  CHECK(below_half > 0);
  CHECK(below_half < 10);
  CHECK(order.indices(0) != order.indices(10));
  // A function of seed, split and epoch alone.
  Splits again = splits_of(107);
  CHECK(again.order("validation").indices(17) == order.indices(17));
  // Evaluations, and a sampler that is asked for, have the dataset's order.
  std::vector<int64_t> first(10);
  std::iota(first.begin(), first.end(), 0);
  CHECK(splits.evaluation_order("validation", 0).indices(0) == first);
  CHECK(splits.evaluation_order("validation", 0).batches_per_epoch() == 11);
  Splits asked = splits_of(107, "samplers: {validation: sequential}\n");
  CHECK(asked.order("validation").indices(0) == first);
  CHECK(asked.order("validation").indices(10).size() == 7);
}

TEST_CASE("a split that is smaller than a batch is logged as a whole") {
  Splits splits = splits_of(7);
  CHECK(splits.order("validation").indices(3).size() == 7);
}

TEST_CASE("all examples may be fixed ones") {
  constexpr int64_t kExamples = 20'000;
  Splits splits(Config(parse_yaml(fmt::format("datasets: {{train: {{class: Synthetic, shape: [1, "
                                              "1, 1], size: {0}}}}}\nbatch_size: {0}\n",
                                              kExamples),
                                  {"test.yaml", 0})),
                /*seed=*/1, c10::kCPU);
  const auto& indices = splits.fixed_examples("train").indices();
  CHECK(std::set<int64_t>(indices.begin(), indices.end()).size() == kExamples);
}

}  // namespace splits_test
}  // namespace stepop
