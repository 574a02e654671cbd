#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cmath>

#include "tests/eval_out/callbacks/run_callback.h"
#include "tests/message_of.h"

namespace stepop {
namespace regression_test {

TEST_CASE("MAE, RMSE and R2 are what scikit-learn says") {
  const auto& data = expected()["regression"];
  const EvalOutputs outputs{.outputs = {{"prediction", doubles(data["prediction"])},
                                        {"target", doubles(data["target"])}}};
  const auto looked = look("regression", outputs);
  for (const char* name : {"mae", "rmse", "r2"}) {
    CHECK(looked->value(name) == doctest::Approx(data[name].get<double>()).epsilon(1e-10));
  }
}

TEST_CASE("each of several numbers has values of its own under its name") {
  const at::Tensor target = at::tensor({1., 10., 2., 20., 3., 60.}).view({3, 2});
  const at::Tensor prediction = at::tensor({1., 13., 2., 20., 6., 60.}).view({3, 2});
  const EvalOutputs outputs{.outputs = {{"prediction", prediction}, {"target", target}}};
  const auto looked = look("regression", outputs, "{names: [price, rent]}");
  CHECK(looked->logs.scalars.key_list() ==
        "mae, rmse, r2, price/mae, price/rmse, price/r2, rent/mae, rent/rmse, rent/r2");
  CHECK(looked->value("price/mae") == doctest::Approx(1));
  CHECK(looked->value("rent/rmse") == doctest::Approx(std::sqrt(3.0)));
  CHECK(looked->value("price/r2") == doctest::Approx(1 - 9.0 / 2));
  CHECK(looked->value("rent/r2") == doctest::Approx(1 - 9.0 / 1400));
  CHECK(looked->value("r2") == doctest::Approx(1 - (9.0 / 2 + 9.0 / 1400) / 2));
  CHECK(message_of([&] {
          look("regression", outputs, "{names: [price]}");
        }).find("names: expected 2, one for each number of outputs/target, found 1") !=
        std::string::npos);
}

TEST_CASE("many blocks give what one gives, far from zero as well") {
  // Numbers whose sum of squares has no digits left for their spread.
  constexpr int64_t kRows = 2'500'000;
  const at::Tensor target = at::arange(kRows).remainder(2).to(at::kDouble).add(1e9);
  const EvalOutputs outputs{.outputs = {{"prediction", target.add(0.25)}, {"target", target}}};
  const auto looked = look("regression", outputs);
  CHECK(looked->value("mae") == doctest::Approx(0.25).epsilon(1e-9));
  CHECK(looked->value("rmse") == doctest::Approx(0.25).epsilon(1e-9));
  CHECK(looked->value("r2") == doctest::Approx(0.75).epsilon(1e-6));
}

TEST_CASE(
    "the target may be a label of the dataset or a part of its examples, at the rows' indices") {
  const EvalOutputs outputs{.outputs = {{"prediction", at::tensor({1., 2.})}}};
  const at::Tensor truth = at::tensor({9., 9., 1., 9., 4.});
  const std::vector<int64_t> indices{2, 4};
  CHECK(look("regression", outputs, "{}", TensorData({}, {{"target", truth}}), indices)
            ->value("mae") == 1);
  CHECK(look("regression", outputs, "{target: y}", TensorData({{"y", truth}}), indices)
            ->value("mae") == 1);
}

TEST_CASE(
    "a target that never changes has an R2 of 1 when it is hit, else of 0; one row has none") {
  const at::Tensor same = at::full({4}, 3.0);
  const auto r2 = [](const at::Tensor& prediction, const at::Tensor& target) {
    return look("regression", {.outputs = {{"prediction", prediction}, {"target", target}}})
        ->value("r2");
  };
  CHECK(r2(same, same) == 1);
  CHECK(r2(same.add(1), same) == 0);
  const EvalOutputs one{.outputs = {{"prediction", at::ones({1})}, {"target", at::ones({1})}}};
  CHECK(look("regression", one)->logs.scalars.key_list() == "mae, rmse");
}

TEST_CASE("what regression misses is named") {
  const auto message = [](const EvalOutputs& outputs, const char* params = "{}",
                          const TensorData& data = TensorData()) {
    return message_of([&] { look("regression", outputs, params, data); });
  };
  const at::Tensor two = at::ones({2});
  CHECK(message({.outputs = {{"y", two}}}) ==
        "no \"prediction\" in FILE; the file has: outputs/y; name another key by \"prediction\"");
  CHECK(message({.outputs = {{"prediction", two}}}) ==
        "no \"target\" in FILE, nor in the dataset; the file has: outputs/prediction; name another "
        "key by \"target\"");
  CHECK(message({.outputs = {{"prediction", two}}}, "{}", TensorData({{"y", two}})) ==
        "no \"target\" in FILE, nor in the dataset (its examples have: y, index); the file has: "
        "outputs/prediction; name another key by \"target\"");
  CHECK(message({.outputs = {{"prediction", two}}}, "{target: prediction}") ==
        "prediction and target are both outputs/prediction; name another key by \"target\"");
  CHECK(message({.outputs = {{"prediction", two}, {"target", at::ones({2, 3})}}}) ==
        "outputs/prediction has the shape [] an example, outputs/target has [3]");
  CHECK(message({.outputs = {{"prediction", two}, {"target", at::tensor({1., NAN})}}}) ==
        "outputs/target has a NaN in row 1 (example 1 of the dataset)");
  CHECK(message({.outputs = {{"prediction", std::vector<std::string>{"a", "b"}}},
                 .labels = {{"target", two}}},
                "{target: prediction, prediction: target}") ==
        "outputs/prediction must hold tensors of one shape, found texts");
}

}  // namespace regression_test
}  // namespace stepop
