#include "runtime/data/batch.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include "tests/message_of.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace batch_test {

Example example(double value) {
  return {.tensors = {{"x", at::full({2}, value)}, {"target/class", at::full({}, int64_t(value))}},
          .texts = {{"name", "n" + std::to_string(static_cast<int>(value))}}};
}

TEST_CASE("examples are stacked, texts become lists, a key with a slash nests") {
  const Batch batch = collate({example(1), example(2), example(3)}, {7, 8, 9});
  CHECK(batch.size() == 3);
  CHECK(values_of<float>(batch["x"]) == std::vector<float>{1, 1, 2, 2, 3, 3});
  CHECK(batch["x"].sizes() == at::IntArrayRef({3, 2}));
  CHECK(values_of<int64_t>(batch["target/class"]) == std::vector<int64_t>{1, 2, 3});
  CHECK(values_of<int64_t>(batch.at("target")["class"]) == std::vector<int64_t>{1, 2, 3});
  CHECK(batch.text("name") == std::vector<std::string>{"n1", "n2", "n3"});
  CHECK(batch.indices() == std::vector<int64_t>{7, 8, 9});
}

TEST_CASE("tensors that are not contiguous are stacked by their values") {
  const at::Tensor matrix = at::arange(6).reshape({2, 3});
  const Batch batch = collate({{.tensors = {{"x", matrix.t()}}, .texts = {}}}, {0});
  CHECK(values_of<int64_t>(batch["x"]) == std::vector<int64_t>{0, 3, 1, 4, 2, 5});
}

TEST_CASE("channels last are the same values in another order in memory, of images alone") {
  const at::Tensor image = at::arange(24, at::kFloat).reshape({2, 3, 4});
  const at::Tensor mask = at::arange(8).reshape({1, 2, 4});
  const Batch batch = collate({{.tensors = {{"image", image}, {"mask", mask}}, .texts = {}}}, {0});
  const Batch last = batch.channels_last();
  CHECK(last["image"].equal(batch["image"]));
  CHECK(last["image"].strides() == at::IntArrayRef({24, 1, 8, 2}));
  CHECK(last["mask"].is_same(batch["mask"]));
  CHECK(last.indices() == batch.indices());
}

TEST_CASE("a key that is not there is an error with those that are") {
  const Batch batch = collate({example(1)}, {0});
  CHECK(message_of([&] { batch["y"]; }) ==
        "the batch has no tensor \"y\"; there are: x, target/class");
  CHECK(message_of([&] { batch["name"]; }) ==
        "the batch has no tensor \"name\"; there are: x, target/class (as text it is there: "
        "batch.text(key))");
  CHECK(message_of([&] { batch.text("x"); }) == "the batch has no text \"x\"; there are: name");
  CHECK(message_of([&] { batch.at("y"); }) ==
        "the batch has nothing below \"y\"; there are: x, target/class");
}

TEST_CASE("examples that do not go together are named by their index in the dataset") {
  const auto stacked = [](Example second) {
    return message_of([&] { collate({example(1), second}, {10, 20}); });
  };
  const std::string end =
      "; examples of one batch need the same keys, shapes and types, or a dataset with its own "
      "collate()";
  Example other = example(2);
  other.tensors.set("x", at::zeros({3}));
  CHECK(stacked(other) ==
        "cannot put examples 10 and 20 into one batch: \"x\" is float32 [2] in "
        "the first and float32 [3] in the second" +
            end);
  other = example(2);
  other.tensors.erase("x");
  CHECK(stacked(other) ==
        "cannot put examples 10 and 20 into one batch: \"x\" is only in the first" + end);
  other = example(2);
  other.texts.set("more", "");
  CHECK(stacked(other) ==
        "cannot put examples 10 and 20 into one batch: \"more\" is only in the second" + end);
  other = example(2);
  other.tensors.set("x", at::Tensor());
  CHECK(stacked(other) ==
        "cannot put examples 10 and 20 into one batch: \"x\" is float32 [2] in "
        "the first and an undefined tensor in the second" +
            end);
  CHECK(message_of([&] {
          collate({other, other}, {10, 20});
        }) == "example 10: \"x\" is an undefined tensor");
}

}  // namespace batch_test
}  // namespace stepop
