#include <doctest/doctest.h>

#include "tests/eval_out/callbacks/run_callback.h"
#include "tests/message_of.h"

namespace stepop {
namespace top_k_test {

const at::Tensor kLogits =
    at::tensor({5., 1., 0., 0., 2., 1., 0., 3., 9., 7., 2., 1.}).view({4, 3});

TEST_CASE("top_k is what scikit-learn says") {
  const auto& data = expected()["classification"];
  const auto looked = look("top_k",
                           {.outputs = {{"logits", doubles(data["logits"])}},
                            .labels = {{"class", doubles(data["class"]).to(at::kLong)}}},
                           "{k: [1, 2, 3]}");
  CHECK(looked->logs.scalars.key_list() == "top_1, top_2, top_3");
  for (const char* k : {"1", "2", "3"}) {
    CHECK(looked->value(std::string("top_") + k) ==
          doctest::Approx(data["top_k"][k].get<double>()));
  }
}

TEST_CASE("of equal logits the first counts as the larger one, as in the accuracy") {
  const EvalOutputs outputs{
      .outputs = {{"logits", at::tensor({1., 1., 0., 1., 1., 0.}).view({2, 3})}},
      .labels = {{"class", at::tensor({0, 1})}}};
  CHECK(look("top_k", outputs, "{k: 1}")->value("top_1") == 0.5);
  CHECK(look("top_k", outputs, "{k: 2}")->value("top_2") == 1);
  CHECK(look("accuracy", outputs)->value("accuracy") == 0.5);
}

TEST_CASE("five are the default only where there are five classes") {
  const at::Tensor truth = at::tensor({0, 1, 2, 0});
  CHECK(look("top_k", {.outputs = {{"logits", kLogits}}, .labels = {{"class", truth}}})
            ->logs.scalars.key_list() == "top_1");
}

TEST_CASE("what top_k misses is named") {
  const auto message = [&](const at::Tensor& logits, const at::Tensor& truth,
                           const char* params = "{}") {
    return message_of([&] {
      look("top_k", {.outputs = {{"logits", logits}}, .labels = {{"class", truth}}}, params,
           TensorData(), {10, 11, 12, 13});
    });
  };
  const at::Tensor truth = at::tensor({0, 1, 2, 0});
  CHECK(message(kLogits, truth, "{k: 4}") ==
        "test.yaml:1: k: expected 1 to 3, the number of classes, found 4");
  CHECK(message(kLogits, truth, "{k: []}") ==
        "test.yaml:1: k: expected at least one number, found []");
  CHECK(message(truth, truth) ==
        "outputs/logits must have the shape [classes] an example, found []");
  CHECK(message(kLogits, at::tensor({0, 1, 3, 0})) ==
        "labels/class has the class 3 in row 2 (example 12 of the dataset), but outputs/logits has "
        "the scores of 3 classes, 0 to 2");
  CHECK(message(kLogits, at::tensor({0, 1, -1, 0})) ==
        "labels/class has the class -1 in row 2 (example 12 of the dataset); classes count from 0, "
        "and -100 leaves out");
  at::Tensor with_nan = kLogits.clone();
  with_nan[3][1].fill_(NAN);
  CHECK(message(with_nan, truth) ==
        "outputs/logits has a NaN in row 3 (example 13 of the dataset)");
}

}  // namespace top_k_test
}  // namespace stepop
