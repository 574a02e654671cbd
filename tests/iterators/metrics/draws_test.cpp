// Metrics and data that are drawn at random, against the torchmetrics that is installed.
#include <ATen/TensorOperators.h>
#include <doctest/doctest.h>

#include <algorithm>

#include "iterators/metrics/metric.h"
#include "runtime/core/formats/safetensors.h"
#include "tests/places.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"
#include "tests/test_run.h"

namespace stepop {
namespace metric_draws_test {

TEST_CASE("metrics drawn at random, in batches, have the values of torchmetrics") {
  const ScratchFolder folder;
  const std::string said =
      run_python(read_bytes(STEPOP_SOURCE_DIR "/tests/iterators/metrics/draws.py"),
                 {folder.path("draws.safetensors")});
  if (said == "no torchmetrics") {
    MESSAGE("skipped: torchmetrics is not installed");
    return;
  }
  const SafetensorsFile draws = load_safetensors(folder.path("draws.safetensors"));
  CHECK(draws.metadata.size() == 20);
  for (const auto& [name, text] : draws.metadata) {
    INFO(name, " ", text);
    const at::Tensor& prediction = draws.tensors.at(name + "/prediction");
    const at::Tensor& target = draws.tensors.at(name + "/target");
    const at::Tensor& theirs = draws.tensors.at(name + "/value");
    const auto metric = metric_classes().build(test_config("metric: " + text), "metric");
    constexpr int64_t kBatch = 16;
    for (int64_t first = 0; first < target.size(0); first += kBatch) {
      const int64_t last = std::min(first + kBatch, target.size(0));
      metric->update(prediction.slice(0, first, last), target.slice(0, first, last));
    }
    int64_t i = 0;
    for (const auto& [key, value] : metric->compute()) {
      REQUIRE(i < theirs.numel());
      CHECK(value.read(key) == doctest::Approx(theirs[i++].item<double>()).epsilon(1e-5));
    }
    CHECK(i == theirs.numel());
  }
}

}  // namespace metric_draws_test
}  // namespace stepop
