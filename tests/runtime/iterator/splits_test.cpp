#include "runtime/iterator/splits.h"

#include <doctest/doctest.h>

#include "runtime/config/yaml_reader.h"

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

}  // namespace splits_test
}  // namespace stepop
