#include "runtime/core/measure/tensor_statistics.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace stepop {
namespace tensor_statistics_test {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST_CASE("the numbers from 0 to n - 1 have the mean (n - 1) / 2, in one block or many") {
  const at::Tensor numbers = at::arange(1'000'000, at::kDouble);
  TensorStatistics whole;
  whole.add(numbers.reshape({1000, 1000}).t());  // of any strides
  TensorStatistics blocks;
  for (int64_t i = 0; i < 10; ++i) blocks.add(numbers.slice(0, i * 100'000, (i + 1) * 100'000));
  for (const auto& statistics : {whole, blocks}) {
    CHECK(statistics.count() == 1'000'000);
    CHECK(statistics.min() == 0.0);
    CHECK(statistics.max() == 999'999.0);
    CHECK(*statistics.mean() == doctest::Approx(499'999.5).epsilon(1e-12));
    CHECK(statistics.nans() == 0);
    CHECK(statistics.infinities() == 0);
  }
}

TEST_CASE("NaN and infinities are counted and poison nothing") {
  TensorStatistics statistics;
  statistics.add(at::tensor({std::nan(""), 3.0, -kInfinity, 1.0, kInfinity, std::nan("")}));
  CHECK(statistics.count() == 6);
  CHECK(statistics.min() == 1.0);
  CHECK(statistics.max() == 3.0);
  CHECK(statistics.mean() == 2.0);
  CHECK(statistics.nans() == 2);
  CHECK(statistics.infinities() == 2);
}

TEST_CASE("nothing finite has no range") {
  TensorStatistics statistics;
  CHECK(!statistics.min());
  statistics.add(at::empty({0}));
  statistics.add(at::full({3}, std::nan("")));
  CHECK(statistics.count() == 3);
  CHECK(!statistics.max());
  CHECK(!statistics.mean());
}

TEST_CASE("every type of a tensor is counted") {
  for (const auto type : {at::kByte, at::kChar, at::kShort, at::kInt, at::kLong, at::kBool,
                          at::kHalf, at::kBFloat16, at::kFloat, at::kDouble}) {
    CAPTURE(type);
    TensorStatistics statistics;
    statistics.add(at::tensor({0, 1, 1, 0}).to(type));
    CHECK(statistics.mean() == 0.5);
  }
  TensorStatistics complex;
  complex.add(at::tensor({1.0, std::nan("")}).to(at::kComplexFloat));
  CHECK(complex.nans() == 1);
  CHECK(!complex.min());
}

TEST_CASE("numbers near the largest have a mean") {
  TensorStatistics statistics;
  const double huge = std::numeric_limits<double>::max();
  for (int i = 0; i < 4; ++i) statistics.add(at::tensor({huge}, at::kDouble));
  CHECK(statistics.mean() == huge);
}

}  // namespace tensor_statistics_test
}  // namespace stepop
