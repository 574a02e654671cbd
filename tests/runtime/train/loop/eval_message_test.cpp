#include "runtime/train/loop/eval_message.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <doctest/doctest.h>

namespace stepop {
namespace eval_message_test {

bool is_same(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && at::equal(a, b);
}

TEST_CASE("what a process found for a batch comes out of its bytes as it was") {
  const std::string odd("a\0\xff\n\"", 5);
  EvalMessage sent;
  sent.indices = {7, 0, 1LL << 40};
  sent.outputs.outputs.set("z/last", at::arange(6, at::kFloat).view({3, 2}));
  sent.outputs.outputs.set("boxes", std::vector<at::Tensor>{at::full({2, 4}, 1.0, at::kHalf),
                                                            at::empty({0, 4}, at::kHalf),
                                                            at::full({1, 4}, 3.0, at::kHalf)});
  sent.outputs.outputs.set("caption", std::vector<std::string>{"one", "", odd});
  sent.outputs.outputs.set("a/first", at::arange(3, at::kLong));
  sent.outputs.labels.set("loss", at::arange(3, at::kDouble));
  sent.outputs.labels.set("accuracy", {at::full({3}, true, at::kBool), at::arange(3)});

  const EvalMessage read = eval_message_from_bytes(to_bytes(sent));
  CHECK(read.indices == sent.indices);
  std::vector<std::string> keys;
  for (const auto& [key, value] : read.outputs.outputs) keys.push_back(key);
  CHECK(keys == std::vector<std::string>{"z/last", "boxes", "caption", "a/first"});
  for (const char* key : {"z/last", "a/first"}) {
    CHECK(is_same(std::get<at::Tensor>(read.outputs.outputs.at(key)),
                  std::get<at::Tensor>(sent.outputs.outputs.at(key))));
  }
  const auto& boxes = std::get<std::vector<at::Tensor>>(read.outputs.outputs.at("boxes"));
  const auto& own = std::get<std::vector<at::Tensor>>(sent.outputs.outputs.at("boxes"));
  REQUIRE(boxes.size() == own.size());
  for (size_t i = 0; i < own.size(); ++i) CHECK(is_same(boxes[i], own[i]));
  CHECK(std::get<std::vector<std::string>>(read.outputs.outputs.at("caption")) ==
        std::vector<std::string>{"one", "", odd});
  CHECK(read.outputs.labels.size() == 2);
  CHECK(read.outputs.labels.begin()->first == "loss");
  for (const auto& [key, label] : sent.outputs.labels) {
    CHECK(is_same(read.outputs.labels.at(key).value(), label.value()));
    CHECK(read.outputs.labels.at(key).has_weight() == label.has_weight());
    if (label.has_weight()) CHECK(is_same(read.outputs.labels.at(key).weight(), label.weight()));
  }
}

TEST_CASE("a message of no examples and of no outputs comes out as it was") {
  const EvalMessage nothing = eval_message_from_bytes(to_bytes(EvalMessage{}));
  CHECK(nothing.indices.empty());
  CHECK(nothing.outputs.outputs.empty());
  CHECK(nothing.outputs.labels.empty());

  EvalMessage sent;
  sent.outputs.outputs.set("tensor", at::empty({0, 3}, at::kFloat));
  sent.outputs.outputs.set("ragged", std::vector<at::Tensor>());
  sent.outputs.outputs.set("texts", std::vector<std::string>());
  const EvalMessage read = eval_message_from_bytes(to_bytes(sent));
  CHECK(is_same(std::get<at::Tensor>(read.outputs.outputs.at("tensor")), at::empty({0, 3})));
  CHECK(std::get<std::vector<at::Tensor>>(read.outputs.outputs.at("ragged")).empty());
  CHECK(std::get<std::vector<std::string>>(read.outputs.outputs.at("texts")).empty());
}

}  // namespace eval_message_test
}  // namespace stepop
