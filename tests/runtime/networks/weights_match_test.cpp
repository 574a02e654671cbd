#include "runtime/networks/weights_match.h"

#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include "tests/message_of.h"

namespace stepop {
namespace weights_match_test {

using Names = std::vector<std::string>;

State with_prefix(const std::string& prefix, const State& state) {
  State prefixed;
  for (const auto& [name, tensor] : state) prefixed.emplace(prefix + name, tensor);
  return prefixed;
}

TEST_CASE("names are matched by their prefix and map, shapes and types one by one") {
  const State own = {{"a.w", at::zeros({2, 3})}, {"a.b", at::zeros({3})}, {"c", at::zeros({})}};
  const auto match = [&](const State& file, const NameRules& rules) {
    return match_weights(file, own, rules);
  };
  WeightsMatch found = match(own, {});
  CHECK(found.is_whole());
  CHECK(found.wanted == 3);
  CHECK(found.fitting.size() == 3);
  CHECK(found.conversions.empty());

  // Tensors without the prefix are no concern of ours.
  State file = with_prefix("net.", own);
  file["optimizer.a.w"] = at::zeros({1});
  CHECK(match(file, {"net.", {}}).is_whole());
  CHECK(match(file, {}).left_over == Names({"net.a.b", "net.a.w", "net.c", "optimizer.a.w"}));
  CHECK(match(file, {}).missing == Names({"a.b", "a.w", "c"}));

  // The first beginning that fits is applied, once, after the prefix went.
  file = {{"net.old.w", own.at("a.w")}, {"net.older.b", own.at("a.b")}, {"net.c", own.at("c")}};
  CHECK(match(file, {"net.", {{"old.", "a."}, {"older.", "a."}}}).is_whole());
  CHECK(match(file, {"net.", {{"old", "x"}, {"older.", "a."}}}).unused == Names({"\"older.\""}));
  CHECK(match({{"w", own.at("a.w")}, {"b", own.at("a.b")}, {"c", own.at("c")}},
              {"", {{"c", "c"}, {"", "a."}}})
            .is_whole());
  CHECK(message_of([&] {
          match(with_prefix("y.", own), {"", {{"y.a.w", "z"}, {"y.c", "z"}}});
        }) == "\"y.a.w\" and \"y.c\" both become \"z\"");

  found = match({{"a.w", at::zeros({3, 2})}, {"a.b", at::zeros({3}, at::kLong)}}, {});
  CHECK(found.different == Names({"a.b: int64 [3] in the file, float32 [3] here",
                                  "a.w: [3, 2] in the file, [2, 3] here"}));
  CHECK(found.missing == Names({"c"}));
  found = match({{"a.w", at::zeros({2, 3}, at::kHalf)}, {"c", at::zeros({}, at::kDouble)}}, {});
  CHECK(found.conversions == Names({"float16 to float32", "float64 to float32"}));
}

TEST_CASE("integers and bools are of their own type or refused") {
  const State own = {{"count", at::zeros({}, at::kLong)}, {"mask", at::zeros({2}, at::kBool)}};
  CHECK(match_weights(own, own, {}).is_whole());
  const State file = {{"count", at::zeros({}, at::kInt)}, {"mask", at::zeros({2})}};
  CHECK(match_weights(file, own, {}).different ==
        Names({"count: int32 [] in the file, int64 [] here",
               "mask: float32 [2] in the file, bool [2] here"}));
}

TEST_CASE("a tensor that is tied to one that was found is not missing") {
  const at::Tensor tied = at::zeros({3, 2});
  const State own = {{"decoder.w", tied}, {"encoder.w", tied}, {"other", at::zeros({3, 2})}};
  CHECK(match_weights({{"encoder.w", at::zeros({3, 2})}}, own, {}).missing == Names({"other"}));
}

TEST_CASE("the prefix with which names would fit is found") {
  const State own = {{"a.w", at::zeros({1})}, {"b", at::zeros({1})}};
  CHECK(nearest_prefix(with_prefix("module.net.", own), own).first == "module.net.");
  CHECK(nearest_prefix(with_prefix("module.net.", own), own).second == 2);
  CHECK(nearest_prefix(own, own).first == "");
  CHECK(nearest_prefix({{"x", at::zeros({1})}, {"y.z.", at::zeros({1})}}, own).second == 0);
}

}  // namespace weights_match_test
}  // namespace stepop
