#include "runtime/data/batch.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

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

TEST_CASE("a view that conjugates or negates is stacked by its values") {
  const at::Tensor z = at::full({2}, c10::complex<double>(1, 2), at::kComplexDouble);
  const auto stacked = [](const at::Tensor& x) {
    return collate({{.tensors = {{"x", x}}, .texts = {}}}, {0})["x"][0];
  };
  REQUIRE(z.conj().is_contiguous());
  CHECK(stacked(z.conj()).equal(z.conj().resolve_conj()));
  const at::Tensor minus = at::imag(z.conj());
  REQUIRE(minus.is_neg());
  CHECK(values_of<double>(stacked(minus)) == std::vector<double>{-2, -2});
}

/// The arguments `non_blocking` of the copies that `call` asks for, whether or not it throws.
std::vector<bool> copies_that_overlap(const std::function<void()>& call) {
  static std::vector<bool> found;
  found.clear();
  const auto handle =
      at::addThreadLocalCallback(at::RecordFunctionCallback([](const at::RecordFunction& function) {
                                   if (std::string(function.name()) == "aten::to") {
                                     // to(self, dtype, layout, device, pin_memory, non_blocking,
                                     // copy, memory_format)
                                     found.push_back(function.inputs()[5].toBool());
                                   }
                                   return std::unique_ptr<at::ObserverContext>();
                                 }).needsInputs(true));
  try {
    call();
  } catch (const c10::Error&) {  // the device meta has no values that could be copied from it
  }
  at::removeCallback(handle);
  return found;
}

TEST_CASE("a copy may overlap with what follows only on its way from pinned memory to a device") {
  // The device meta stands for a GPU, which no test machine needs to have.
  const auto batch_on = [](c10::Device device) {
    return Batch({{"x", at::zeros({2}, device)}}, {}, {0, 1});
  };
  CHECK(copies_that_overlap([&] { batch_on(at::kMeta).to(at::kCPU); }) == std::vector<bool>{false});
  CHECK(copies_that_overlap([&] { batch_on(at::kCPU).to(at::kMeta); }) == std::vector<bool>{false});
  CHECK(copies_that_overlap([&] { batch_on(at::kCPU).to(at::kCPU); }).empty());
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
  other.tensors.set("x", at::zeros({2}, at::kMeta));
  CHECK(stacked(other) ==
        "cannot put examples 10 and 20 into one batch: \"x\" is on cpu in the first and on meta in "
        "the second" +
            end);
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
