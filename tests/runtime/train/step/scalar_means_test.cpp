#include "runtime/train/step/scalar_means.h"

#include <ATen/ops/full.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cmath>

#include "tests/message_of.h"

namespace stepop {
namespace scalar_means_test {

using Values = std::vector<std::pair<std::string, double>>;

Values take(ScalarMeans& means) {
  Values values;
  for (const auto& [op, logs] : means.take()) {
    for (const auto& [key, scalar] : logs.scalars) {
      values.emplace_back(op + "/" + key, scalar.read(key));
    }
  }
  return values;
}

TEST_CASE("each value is the mean of all that came since the last one, in the order of coming") {
  ScalarMeans means;
  means.add("train/train_op", {{"z", 1}, {"a", at::full({}, 4.0F)}});
  means.add("train/train_op", {{"z", 2}, {"a", at::full({}, 8.0F)}});
  means.add("train/other", {{"b", 7}});
  const Values expected = {
      {"train/train_op/z", 1.5}, {"train/train_op/a", 6}, {"train/other/b", 7}};
  CHECK(take(means) == expected);
  CHECK(take(means).empty());
}

double mean_of_equal(const at::Tensor& value, int count) {
  ScalarMeans means;
  for (int i = 0; i < count; ++i) means.add("train/train_op", {{"x", value}});
  return take(means).front().second;
}

TEST_CASE(
    "the mean of equal scalars is that scalar, whatever its type and however many there are") {
  CHECK(mean_of_equal(at::full({}, 0.5, at::kBFloat16), 1000) == 0.5);
  CHECK(mean_of_equal(at::full({}, 60000, at::kHalf), 3) == 60000 - 60000 % 32);
  CHECK(mean_of_equal(at::full({}, true, at::kBool), 3) == 1);
  CHECK(mean_of_equal(at::full({}, 3'000'000'000'000'000'000, at::kLong), 4) == 3e18);
  CHECK(mean_of_equal(at::full({1, 1}, 0.1F), 1000) == doctest::Approx(0.1F).epsilon(1e-12));
}

TEST_CASE("totals of older checkpoints, in the scalar's own type, are resumed from") {
  ScalarMeans means;
  means.load({{"000/train/train_op/loss.total", at::full({1}, 64, at::kBFloat16)},
              {"000/train/train_op/loss.count", at::scalar_tensor(128, at::kLong)}});
  means.add("train/train_op", {{"loss", at::full({1}, 0.25, at::kBFloat16)}});
  CHECK(take(means) == Values{{"train/train_op/loss", 64.25 / 129}});
}

TEST_CASE("what was saved in between goes on as if nothing had happened") {
  ScalarMeans whole;
  for (const char name : std::string_view("zyxwvutsrqpo")) {
    whole.add("train/train_op", {{std::string(1, name), 0}});
  }
  ScalarMeans resumed;
  resumed.add("old", {{"gone", 1}});
  resumed.load(whole.save());
  for (ScalarMeans* means : {&whole, &resumed}) means->add("train/train_op", {{"z", 10}});
  const Values values = take(whole);
  CHECK(values.front() == std::pair<std::string, double>{"train/train_op/z", 5});
  CHECK(take(resumed) == values);
}

TEST_CASE("a mean takes its weight along, and what counts for nothing may be NaN") {
  ScalarMeans whole;
  const auto add = [](ScalarMeans& means, const at::Tensor& value, double weight) {
    means.add("train/train_op", {{"known", WeightedMean(value, weight)},
                                 {"late", WeightedMean(value, at::full({}, weight))}});
  };
  add(whole, at::full({}, 2.F), 3);
  add(whole, at::full({}, std::nanf("")), 0);
  ScalarMeans resumed;
  resumed.load(whole.save());
  for (ScalarMeans* means : {&whole, &resumed}) {
    add(*means, at::full({}, 10.F), 1);
    CHECK(take(*means) == Values{{"train/train_op/known", 4}, {"train/train_op/late", 4}});
  }
  CHECK(message_of([&] {
          add(whole, at::full({}, 1.F), 1);
          whole.add("train/train_op", {{"late", 1}});
        }) == "train/train_op/late has a weight in some batches and none in others");
}

TEST_CASE("batches of a step count by their share of it, steps count the same") {
  ScalarMeans means;
  for (const auto& [value, share] : {std::pair{1.0, 0.4}, {1.0, 0.4}, {25.0, 0.2}}) {
    means.add("train/train_op", {{"x", value}}, {.own = share, .all = share});
  }
  means.add("train/train_op", {{"x", 2}});
  CHECK(take(means).front().second == doctest::Approx((5.8 + 2) / 2));
}

TEST_CASE("a thousand and more scalars come back by their names, in their order") {
  ScalarMeans whole;
  for (int i = 0; i < 1012; ++i) {
    whole.add("train/train_op", {{"scalar_" + std::to_string(i), i}});
  }
  ScalarMeans resumed;
  resumed.load(whole.save());
  CHECK(take(resumed) == take(whole));
}

TEST_CASE("a tensor that is changed after it was logged keeps its value there") {
  ScalarMeans means;
  const at::Tensor loss = at::full({}, 4.0F);
  means.add("train/train_op", {{"loss", loss}});
  loss.fill_(100);
  CHECK(take(means) == Values{{"train/train_op/loss", 4}});
}

TEST_CASE("what cannot be one number is refused with its name") {
  ScalarMeans means;
  CHECK(message_of([&] {
          means.add("train/train_op", {{"loss", at::zeros({3})}});
        }).starts_with("train/train_op/loss"));
  CHECK(message_of([&] {
          means.load({{"000/a/b.total", at::zeros({})}});
        }) == "000/a/b.count: missing from the checkpoint");
}

}  // namespace scalar_means_test
}  // namespace stepop
