#include "eval_out/eval_schema.h"

#include <ATen/ops/ones.h>
#include <doctest/doctest.h>

#include "tests/message_of.h"

namespace stepop {
namespace eval_schema_test {

std::string check(const EvalOutputs& outputs, int64_t batch_size) {
  return message_of([&] { check_eval_outputs(outputs, batch_size); });
}

TEST_CASE("a label is one number an example") {
  CHECK(check({.labels = {{"error", at::ones({4, 1})}}}, 4) ==
        "eval_op: labels/error has the shape [4, 1]; a label is one number an example, [4]: "
        "flatten() makes it so, or return it in outputs");
  CHECK(check({.labels = {{"error", at::ones({4, 3})}}}, 4) ==
        "eval_op: labels/error has the shape [4, 3]; a label is one number an example, [4]: "
        "take the mean over the rest, or return it in outputs");
}

TEST_CASE("outputs and labels with one row an example are right") {
  const EvalOutputs outputs{
      .outputs = {{"logits", at::ones({2, 10})},
                  {"boxes", std::vector<at::Tensor>{at::ones({0, 4}), at::ones({3, 4})}},
                  {"caption", std::vector<std::string>{"ein Hündchen", "𝄞 €"}},
                  {"encoder/mean", at::ones({2, 3}, at::kBFloat16)}},
      .labels = {{"loss", at::ones({2})}}};
  CHECK(check(outputs, 2) == "no error");
}

TEST_CASE("a first dimension that is not the batch is named with its key") {
  CHECK(check({.outputs = {{"logits", at::ones({3, 10})}}}, 64) ==
        "eval_op: outputs/logits has first dimension 3, the batch has 64 examples");
  CHECK(check({.labels = {{"loss", at::ones({})}}}, 64) ==
        "eval_op: labels/loss is a single number, the batch has 64 examples");
  CHECK(check({.outputs = {{"name", std::vector<std::string>{"a"}}}}, 2) ==
        "eval_op: outputs/name has 1 text, the batch has 2 examples");
  CHECK(check({.outputs = {{"boxes", std::vector<at::Tensor>{at::ones({1})}}}}, 2) ==
        "eval_op: outputs/boxes has 1 tensor, the batch has 2 examples");
}

TEST_CASE("tensors that cannot be stored are refused") {
  CHECK(check({.outputs = {{"x", at::Tensor()}}}, 1) ==
        "eval_op: outputs/x is an undefined tensor");
  CHECK(check({.outputs = {{"x", at::ones({2, 2}).to_sparse()}}}, 2) ==
        "eval_op: outputs/x is a sparse tensor; return tensor.to_dense()");
  CHECK(check({.outputs = {{"x", at::ones(std::vector<int64_t>(33, 1))}}}, 1) ==
        "eval_op: outputs/x has 33 dimensions; HDF5 stores 32");
}

TEST_CASE("a key has at most as many parts as a reader takes, with `outputs` before them") {
  std::string key = "a";
  for (int i = 0; i < 62; ++i) key += "/a";
  CHECK(check({.outputs = {{key, at::ones({1})}}}, 1) == "no error");
  CHECK(check({.outputs = {{key + "/a", at::ones({1})}}}, 1).find(" has more than 64 parts") !=
        std::string::npos);
}

TEST_CASE("ragged examples differ in their first dimension only") {
  const auto ragged = [](const at::Tensor& first, const at::Tensor& second) {
    return check({.outputs = {{"boxes", std::vector<at::Tensor>{first, second}}}}, 2);
  };
  CHECK(ragged(at::ones({2, 4}), at::ones({2, 5})) ==
        "eval_op: outputs/boxes: example 0 has shape [2, 4], example 1 has [2, 5]; ragged examples "
        "differ in the first dimension only");
  CHECK(ragged(at::ones({2}), at::ones({2}, at::kLong)) ==
        "eval_op: outputs/boxes mixes types: example 0 is float32, example 1 is int64");
  CHECK(ragged(at::ones({2}), at::ones({2}, at::kBFloat16)) ==
        "eval_op: outputs/boxes mixes types: example 0 is float32, example 1 is bfloat16");
  CHECK(ragged(at::ones({2}), at::ones({})) ==
        "eval_op: outputs/boxes, example 1, is a single number; the examples of a ragged output "
        "have a first dimension, of any length");
}

TEST_CASE("text is UTF-8 without zero bytes") {
  const auto text = [](const std::string& second) {
    return check({.outputs = {{"name", std::vector<std::string>{"a", second}}}}, 2);
  };
  const std::string wrong = "eval_op: outputs/name, example 1, is not UTF-8 text";
  for (const char* bad : {"\xe4", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82",
                          "\x80", "\xf0\x80\x80\x80", "\xff"}) {
    CHECK(text(bad) == wrong);
  }
  for (const char* good : {"", "\x7f", "\xc2\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"}) {
    CHECK(text(good) == "no error");
  }
  CHECK(text(std::string("a\0b", 3)) ==
        "eval_op: outputs/name, example 1, holds a zero byte; return bytes as a uint8 tensor");
}

TEST_CASE("keys that cannot be a path in the file are refused") {
  const auto key = [](const std::string& name) {
    return check({.outputs = {{name, at::ones({1})}}}, 1);
  };
  const std::string help = "; a key is parts such as \"logits\" or \"encoder/mean\"";
  CHECK(key("") == "eval_op: the key \"outputs/\" has an empty part" + help);
  CHECK(key("a//b") == "eval_op: the key \"outputs/a//b\" has an empty part" + help);
  CHECK(key("a/") == "eval_op: the key \"outputs/a/\" has an empty part" + help);
  CHECK(key("../a") == "eval_op: the key \"outputs/../a\" has the part \"..\"" + help);
  CHECK(key("a/.") == "eval_op: the key \"outputs/a/.\" has the part \".\"" + help);
  CHECK(key("\xff") == "eval_op: the key \"outputs/\xff\" is not UTF-8 text" + help);
}

TEST_CASE("a key cannot be an array and a group") {
  const EvalOutputs outputs{.outputs = {{"a/b", at::ones({1})}, {"a", at::ones({1})}}};
  CHECK(check(outputs, 1) ==
        "eval_op: outputs/a is an array, so that outputs/a/b cannot be below it; rename one");
  const EvalOutputs siblings{.outputs = {{"a", at::ones({1})}, {"ab", at::ones({1})}},
                             .labels = {{"a/b", at::ones({1})}}};
  CHECK(check(siblings, 1) == "no error");
}

}  // namespace eval_schema_test
}  // namespace stepop
