#include "runtime/core/log/weighted_mean.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cmath>

#include "runtime/core/log/logs.h"

namespace stepop {
namespace weighted_mean_test {

double number(const at::Tensor& tensor) { return tensor.to(at::kDouble).item<double>(); }

TEST_CASE("a mean is over what counts, and what does not may be NaN, with a gradient of 0") {
  const at::Tensor values =
      at::tensor({1., 2., NAN, 4., 6., INFINITY}).view({3, 2}).requires_grad_();
  const at::Tensor mask = at::tensor({1., 1., 0., 1., 1., 0.}).view({3, 2});
  const WeightedMean all = weighted_mean(values, mask.to(at::kBool));
  CHECK(number(all.value()) == 13. / 4);
  CHECK(number(all.weight()) == 4);
  all.value().backward();
  CHECK(at::allclose(values.grad(), mask / 4));

  const WeightedMean each = weighted_mean_of_examples(values, mask);
  CHECK(at::allclose(each.value(), at::tensor({1.5, 4., 6.})));
  CHECK(at::allclose(each.weight(), at::tensor({2., 1., 1.})));
  CHECK(number(each.mean().value()) == 13. / 4);
  CHECK(number(each.mean().weight()) == 4);
  // A weight for each example, in a shape that expands.
  const WeightedMean expanded =
      weighted_mean(at::full({2, 3}, 5.), at::tensor({1., 3.}).view({2, 1}));
  CHECK(number(expanded.value()) == 5);
  CHECK(number(expanded.weight()) == 12);
}

TEST_CASE("a mean times a number, and with a further term, keeps its weight") {
  const WeightedMean mean{at::tensor(3., at::kDouble), 5};
  const WeightedMean sum = 0.5 * mean + at::tensor(1., at::kDouble) * 2;
  CHECK(number(sum.value()) == 3.5);
  CHECK(sum.known_weight() == 5);
  CHECK(number((at::tensor(1., at::kDouble) + mean * 2).value()) == 7);
  CHECK_FALSE((0.5 * WeightedMean(at::tensor(1.))).has_weight());
  int asked = 0;
  const WeightedMean late{at::tensor(2.), [&] {
                            ++asked;
                            return at::tensor(4.);
                          }};
  CHECK(number((late * 3).weight()) == 4);
  CHECK(asked == 1);
}

TEST_CASE("a mean over nothing is 0 with the weight 0, and changes no other mean") {
  const at::Tensor values = at::tensor({NAN, 3.}, at::kFloat).requires_grad_();
  const WeightedMean nothing = weighted_mean(values, at::zeros({2}));
  CHECK(number(nothing.value()) == 0);
  CHECK(number(nothing.weight()) == 0);
  nothing.value().backward();
  CHECK(at::allclose(values.grad(), at::zeros({2})));

  const WeightedMean some(at::full({}, 7.), 2);
  CHECK(number(mean_of(nothing, some).value()) == 7);
  CHECK(number(mean_of({at::full({}, NAN), 0}, some).value()) == 7);
  CHECK(number(mean_of({at::full({}, 1.), 4}, some).value()) == 3);
  CHECK(number(mean_of(nothing, nothing).value()) == 0);
}

TEST_CASE("a mean over nothing is left out of what is logged") {
  Logs logs;
  logs.scalars.set("some", WeightedMean(at::full({}, 7.F), 2));
  logs.scalars.set("nothing", WeightedMean(at::full({}, NAN), at::zeros({})));
  logs.scalars.set("late", WeightedMean(at::full({}, 3.F), [] { return at::full({}, 5.); }));
  const OrderedMap<double> numbers = read_scalars({{"op", logs}});
  CHECK(numbers.size() == 2);
  CHECK(numbers.at("op/some") == 7);
  CHECK(numbers.at("op/late") == 3);
}

TEST_CASE("scalars without weights are averaged by their counts") {
  CHECK(mean_of("x", Scalar(1), 4, Scalar(25), 2).read("x") == doctest::Approx(9));
  CHECK(mean_of("x", Scalar(at::full({}, 1.F)), 4, Scalar(at::full({}, 25.F)), 2).read("x") ==
        doctest::Approx(9));
  CHECK(mean_of("x", Scalar(NAN), 0, Scalar(25), 2).read("x") == 25);
}

}  // namespace weighted_mean_test
}  // namespace stepop
