#include "runtime/optim/finite.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace stepop {
namespace finite_test {

constexpr at::ScalarType kTypes[] = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST_CASE("every pattern of 16 bits is finite when PyTorch says so") {
  const at::Tensor patterns = at::arange(65536, at::kInt).to(at::kShort);
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16}) {
    const at::Tensor numbers = patterns.view(type);
    const at::Tensor expected = at::isfinite(numbers);
    int64_t wrong = 0;
    for (int64_t i = 0; i < numbers.numel(); ++i) {
      wrong += is_finite(numbers.narrow(0, i, 1)) != expected[i].item<bool>() ? 1 : 0;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("one number that is not finite is found at any place, the largest ones are finite") {
  for (const at::ScalarType type : kTypes) {
    CAPTURE(c10::toString(type));
    for (const int64_t count : {1, 2, 15, 16, 17, 70}) {
      at::Tensor numbers = at::full({count}, type == at::kHalf ? 65504.0 : 3e38, type);
      numbers[0] = type == at::kHalf ? 6e-8 : 1e-40;  // a subnormal one
      numbers[count - 1] = -0.0;
      REQUIRE(is_finite(numbers));
      CHECK(first_non_finite(numbers) == 0);
      for (const double bad : {kInfinity, -kInfinity, std::nan("")}) {
        for (int64_t i = 0; i < count; ++i) {
          const at::Tensor with_bad = numbers.clone();
          with_bad[i] = bad;
          REQUIRE_FALSE(is_finite(with_bad));
          const double found = first_non_finite(with_bad);
          CHECK((std::isnan(bad) ? std::isnan(found) : found == bad));
        }
      }
    }
  }
}

TEST_CASE("a large tensor is looked at as well, also when its sum overflows") {
  for (const at::ScalarType type : kTypes) {
    CAPTURE(c10::toString(type));
    at::Tensor numbers = at::full({600, 1000}, type == at::kDouble ? 1e308 : 6e4, type);
    CHECK(is_finite(numbers));
    numbers[599][999] = kInfinity;
    CHECK_FALSE(is_finite(numbers));
    numbers[0][0] = -kInfinity;  // the sum of both is NaN
    CHECK_FALSE(is_finite(numbers));
    CHECK(is_finite(numbers.zero_()));
  }
}

TEST_CASE("only the tensor's own numbers count, whatever its strides") {
  at::Tensor whole = at::zeros({6, 8});
  whole[1][3] = std::nan("");
  CHECK_FALSE(is_finite(whole.t()));
  CHECK(is_finite(whole.narrow(0, 2, 4)));
  CHECK(is_finite(whole.narrow(1, 4, 4)));
  CHECK_FALSE(is_finite(whole.narrow(1, 3, 1)));
  CHECK_FALSE(is_finite(whole[1][3].expand({5})));
  CHECK(is_finite(at::zeros({0})));
  CHECK(is_finite(at::zeros({}).requires_grad_()));
}

}  // namespace finite_test
}  // namespace stepop
