#include "runtime/train/checkpoint/state_bytes.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <doctest/doctest.h>

#include <limits>

#include "tests/message_of.h"
#include "tests/same_state.h"

namespace stepop {
namespace state_bytes_test {

TEST_CASE("a state comes out of its bytes as it was, of any type and shape") {
  State state;
  for (const auto type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong, at::kInt,
                          at::kShort, at::kChar, at::kByte, at::kBool, at::kComplexFloat}) {
    state[fmt::format("type.{}", static_cast<int>(type))] = at::arange(5).to(type);
  }
  state["a number"] = at::full({}, -7, at::kLong);
  state["nothing"] = at::empty({0, 3}, at::kFloat);
  state["turned"] = at::arange(6, at::kFloat).view({2, 3}).t();
  state["every other"] = at::arange(8, at::kDouble).slice(0, 0, 8, 2);
  state["name with \"quotes\", \n and ä"] = at::full({1}, std::numeric_limits<double>::quiet_NaN());
  state["trained"] = at::full({2}, 1.5, at::kFloat).requires_grad_();
  const State read = state_from_bytes(to_bytes(state));
  CHECK(differences(read, state) == "");
  CHECK_FALSE(read.at("trained").requires_grad());
}

TEST_CASE("an undefined tensor stays one, and an empty state is empty") {
  const State read = state_from_bytes(to_bytes(State{{"a", {}}, {"b", at::full({1}, 2.0)}}));
  CHECK(read.size() == 2);
  CHECK_FALSE(read.at("a").defined());
  CHECK(read.at("b").item<double>() == 2);
  CHECK(state_from_bytes(to_bytes(State{})).empty());
}

TEST_CASE("tensors that were read have memory of their own") {
  std::string bytes = to_bytes(State{{"a", at::full({3}, 2.0, at::kDouble)}});
  const State read = state_from_bytes(bytes);
  std::fill(bytes.begin(), bytes.end(), '\0');
  CHECK(read.at("a").sum().item<double>() == 6);
}

TEST_CASE("bytes that are cut off are refused") {
  const std::string bytes = to_bytes(State{{"a", at::full({3}, 2.0, at::kDouble)}});
  CHECK(message_of([&] {
          state_from_bytes(std::string_view(bytes).substr(0, bytes.size() - 1));
        }) == "a state of another process is cut off");
}

}  // namespace state_bytes_test
}  // namespace stepop
